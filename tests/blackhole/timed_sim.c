/* SPDX-License-Identifier: Apache-2.0 */
/* Stands before the simulator that LENSING_TIMED_TTSIM names, and counts the time that is spent in it: for open_time.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void (*read_function)(uint64_t, void *, uint32_t);
typedef void (*write_function)(uint64_t, const void *, uint32_t);

double timed_sim_ms(void);
void libttsim_init(void);
void libttsim_clock(uint32_t steps);
void libttsim_pci_mem_rd_bytes(uint64_t address, void *data, uint32_t size);
void libttsim_pci_mem_wr_bytes(uint64_t address, const void *data, uint32_t size);
uint32_t libttsim_pci_config_rd32(uint32_t function, uint32_t offset);
void libttsim_set_pci_dma_mem_callbacks(read_function read, write_function write);

static struct {
    void (*init)(void);
    void (*clock)(uint32_t);
    read_function read;
    write_function write;
    uint32_t (*config_read)(uint32_t, uint32_t);
    void (*set_callbacks)(read_function, write_function);
} real;
static double spent_ms;

static void find(void *library, const char *name, void *function) {
    *(void **)function = dlsym(library, name);
    if (*(void **)function != NULL)
        return;
    fprintf(stderr, "timed_sim: no %s: %s\n", name, dlerror());
    abort();
}

static __attribute__((constructor)) void load(void) {
    void *library = dlopen(getenv("LENSING_TIMED_TTSIM"), RTLD_NOW | RTLD_LOCAL);
    find(library, "libttsim_init", &real.init);
    find(library, "libttsim_clock", &real.clock);
    find(library, "libttsim_pci_mem_rd_bytes", &real.read);
    find(library, "libttsim_pci_mem_wr_bytes", &real.write);
    find(library, "libttsim_pci_config_rd32", &real.config_read);
    find(library, "libttsim_set_pci_dma_mem_callbacks", &real.set_callbacks);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

double timed_sim_ms(void) {
    return spent_ms;
}

void libttsim_init(void) {
    const double start = now_ms();
    real.init();
    spent_ms += now_ms() - start;
}

void libttsim_clock(uint32_t steps) {
    const double start = now_ms();
    real.clock(steps);
    spent_ms += now_ms() - start;
}

void libttsim_pci_mem_rd_bytes(uint64_t address, void *data, uint32_t size) {
    const double start = now_ms();
    real.read(address, data, size);
    spent_ms += now_ms() - start;
}

void libttsim_pci_mem_wr_bytes(uint64_t address, const void *data, uint32_t size) {
    const double start = now_ms();
    real.write(address, data, size);
    spent_ms += now_ms() - start;
}

uint32_t libttsim_pci_config_rd32(uint32_t function, uint32_t offset) {
    return real.config_read(function, offset);
}

void libttsim_set_pci_dma_mem_callbacks(read_function read, write_function write) {
    real.set_callbacks(read, write);
}
