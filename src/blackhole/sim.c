/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/sim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/library.h"
#include "base/memory.h"

/* Vendor and device in the first word of the configuration space. */
#define PCI_BLACKHOLE (0x1E52u | 0xB140u << 16)
#define PCI_BAR0 0x10

/* BAR 0: windows of 2 MiB into the NoC, and three words for each of them (tt-kmd, blackhole.c). */
#define WINDOW_SIZE UINT64_C(0x200000)
#define WINDOW_REGISTERS UINT64_C(0x1FC00000)
#define WINDOW_WORDS 3
#define WINDOW_UNICAST 0u
#define WINDOW_MULTICAST 1u
#define WINDOWS 2

/* Where registers begin in the addresses of a Tensix tile; below is L1. */
#define TILE_REGISTERS UINT64_C(0xFFB00000)

/* Host memory is at 4 x 2^58 of the PCIe tile, where addresses pass its address translation unit, as tt-kmd has it. */
#define HOST_WINDOW (UINT64_C(4) << 58)
#define HOST_WINDOW_MASK ((UINT64_C(1) << 58) - 1)
#define PAGE_SIZE 4096u
#define PINS 16

/* The part of libttsim's interface that is used; see its docs/libttsim_api.md. */
typedef struct simulator_table {
    void (*init)(void);
    void (*clock)(uint32_t steps);
    void (*read)(uint64_t address, void *data, uint32_t size);
    void (*write)(uint64_t address, const void *data, uint32_t size);
    uint32_t (*config_read)(uint32_t function, uint32_t offset);
    void (*set_callbacks)(void (*read)(uint64_t, void *, uint32_t), void (*write)(uint64_t, const void *, uint32_t));
} simulator_table;

/* The library is one card for the process, so what belongs to that card is static. */
static struct {
    simulator_table table;
    char path[4096];
    int powered;
    uint64_t bar0;
    uint32_t windows[WINDOWS][WINDOW_WORDS];
    lns_blackhole_host_memory pins[PINS];
    uint64_t stray; /* the first address outside `pins` that the card used, when `strayed` */
    int strayed;
} card;
static atomic_flag card_taken = ATOMIC_FLAG_INIT;

static const lns_library_symbol symbols[] = {
    {"libttsim_init", offsetof(simulator_table, init), 0},
    {"libttsim_clock", offsetof(simulator_table, clock), 0},
    {"libttsim_pci_mem_rd_bytes", offsetof(simulator_table, read), 0},
    {"libttsim_pci_mem_wr_bytes", offsetof(simulator_table, write), 0},
    {"libttsim_pci_config_rd32", offsetof(simulator_table, config_read), 0},
    {"libttsim_set_pci_dma_mem_callbacks", offsetof(simulator_table, set_callbacks), 0},
};

static lns_library library = {
    .need = "the simulated Blackhole card needs the library that " LNS_BLACKHOLE_SIM_VARIABLE " names",
    .install = "a build of github.com/tenstorrent/ttsim for Blackhole, version 1.10",
    .files = {card.path},
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .table = &card.table,
};

/* ---- Memory of the host ------------------------------------------------------------------------- */

/* The address in this process of what the card calls `address`; NULL, noted for the next call, when it is not pinned.
 */
static char *host_address(uint64_t address, uint32_t size) {
    for (size_t i = 0; i < PINS; i++) {
        const uint64_t base = card.pins[i].noc_address & HOST_WINDOW_MASK;
        if (card.pins[i].data != NULL && address >= base && size <= card.pins[i].size &&
            address - base <= card.pins[i].size - size)
            return (char *)card.pins[i].data + (address - base);
    }
    if (!card.strayed)
        card.stray = address;
    card.strayed = 1;
    return NULL;
}

static void card_reads_host(uint64_t address, void *data, uint32_t size) {
    const char *source = host_address(address, size);
    if (source != NULL)
        memcpy(data, source, size);
    else
        memset(data, 0xFF, size); /* what a PCI bus gives for memory that nobody has */
}

static void card_writes_host(uint64_t address, const void *data, uint32_t size) {
    char *target = host_address(address, size);
    if (target != NULL)
        memcpy(target, data, size);
}

static lns_status sim_pin(lns_blackhole_transport *transport, size_t size, lns_blackhole_host_memory *memory) {
    (void)transport;
    memset(memory, 0, sizeof *memory);
    lns_blackhole_host_memory *pin = card.pins;
    while (pin < card.pins + PINS && pin->data != NULL)
        pin++;
    if (pin == card.pins + PINS)
        return lns_fail(LNS_ERROR_LIMIT, "the simulated card has %d pinned memories, and no more can be made", PINS);
    if (size == 0 || size > SIZE_MAX - PAGE_SIZE)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "%zu bytes cannot be pinned", size);
    const size_t whole = (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    void *data = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return lns_fail_memory(whole);
    pin->data = data;
    pin->size = whole;
    pin->noc_address = HOST_WINDOW | (uint64_t)(uintptr_t)data;
    *memory = *pin;
    return LNS_OK;
}

static void sim_unpin(lns_blackhole_transport *transport, lns_blackhole_host_memory *memory) {
    (void)transport;
    for (size_t i = 0; i < PINS; i++) {
        if (memory->data != NULL && card.pins[i].data == memory->data) {
            munmap(card.pins[i].data, card.pins[i].size);
            memset(&card.pins[i], 0, sizeof card.pins[i]);
        }
    }
    memset(memory, 0, sizeof *memory);
}

/* ---- Windows ------------------------------------------------------------------------------------ */

/* Lets window `window` show the 2 MiB around `address` of `last`, or of all tiles from `first` to `last`. */
static void point_window(unsigned window, const lns_blackhole_tile *first, lns_blackhole_tile last, uint64_t address) {
    const uint64_t base = address / WINDOW_SIZE;
    uint32_t words[WINDOW_WORDS] = {(uint32_t)base, (uint32_t)(base >> 32) & 0x7FF, 0};
    words[1] |= (uint32_t)last.x << 11 | (uint32_t)last.y << 17;
    if (first != NULL) {
        words[1] |= (uint32_t)first->x << 23 | (uint32_t)first->y << 29; /* the low 3 bits of y */
        words[2] |= (uint32_t)first->y >> 3 | 1u << 5;
    }
    for (unsigned i = 0; i < WINDOW_WORDS; i++) {
        if (card.windows[window][i] == words[i])
            continue;
        card.table.write(card.bar0 + WINDOW_REGISTERS + 4 * (WINDOW_WORDS * window + i), &words[i], sizeof words[i]);
        card.windows[window][i] = words[i];
    }
}

static lns_status check_card(void) {
    if (!card.strayed)
        return LNS_OK;
    card.strayed = 0;
    return lns_fail(LNS_ERROR_SYSTEM, "the simulated card used host memory at 0x%llx, which is not pinned",
                    (unsigned long long)card.stray);
}

/* How many of `size` bytes at `address` one access of the window may carry. */
static uint32_t access_size(lns_blackhole_tile tile, uint64_t address, size_t size) {
    if (tile.y >= 2 && tile.y < 2 + LNS_BLACKHOLE_ROWS && address >= TILE_REGISTERS)
        return sizeof(uint32_t);
    const uint64_t rest = WINDOW_SIZE - address % WINDOW_SIZE;
    return (uint32_t)(size < rest ? size : rest);
}

/* Writes through a window that shows `last`, or all tiles from `first` to `last`. */
static lns_status write_window(unsigned window, const lns_blackhole_tile *first, lns_blackhole_tile last,
                               uint64_t address, const void *data, size_t size) {
    const lns_status status = lns_blackhole_check_range(address, size);
    if (status != LNS_OK)
        return status;
    for (const char *source = data; size > 0;) {
        const uint32_t part = access_size(last, address, size);
        point_window(window, first, last, address);
        card.table.write(card.bar0 + WINDOW_SIZE * window + address % WINDOW_SIZE, source, part);
        source += part;
        address += part;
        size -= part;
    }
    return check_card();
}

static lns_status sim_write(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address,
                            const void *data, size_t size) {
    (void)transport;
    return write_window(WINDOW_UNICAST, NULL, tile, address, data, size);
}

static lns_status sim_multicast(lns_blackhole_transport *transport, lns_blackhole_tile first, lns_blackhole_tile last,
                                uint64_t address, const void *data, size_t size) {
    (void)transport;
    return write_window(WINDOW_MULTICAST, &first, last, address, data, size);
}

static lns_status sim_read(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, void *data,
                           size_t size) {
    (void)transport;
    const lns_status status = lns_blackhole_check_range(address, size);
    if (status != LNS_OK)
        return status;
    for (char *target = data; size > 0;) {
        const uint32_t part = access_size(tile, address, size);
        point_window(WINDOW_UNICAST, NULL, tile, address);
        card.table.read(card.bar0 + WINDOW_SIZE * WINDOW_UNICAST + address % WINDOW_SIZE, target, part);
        target += part;
        address += part;
        size -= part;
    }
    return check_card();
}

static lns_status sim_idle(lns_blackhole_transport *transport, unsigned steps) {
    (void)transport;
    card.table.clock(steps);
    return check_card();
}

/* ---- Open and close ----------------------------------------------------------------------------- */

static void sim_close(lns_blackhole_transport *transport) {
    for (size_t i = 0; i < PINS; i++) {
        lns_blackhole_host_memory memory = card.pins[i];
        sim_unpin(transport, &memory);
    }
    lns_free(transport);
    atomic_flag_clear(&card_taken);
}

static const lns_blackhole_transport_operations operations = {
    "sim", sim_write, sim_read, sim_multicast, sim_idle, sim_pin, sim_unpin, sim_close,
};

/* libttsim_init() may be called once in a process. */
static void power_on(void) {
    if (card.powered)
        return;
    card.table.set_callbacks(card_reads_host, card_writes_host);
    card.table.init();
    card.powered = 1;
    const uint32_t low = card.table.config_read(0, PCI_BAR0);
    card.bar0 = (uint64_t)card.table.config_read(0, PCI_BAR0 + 4) << 32 | (low & ~UINT32_C(15));
    memset(card.windows, 0xFF, sizeof card.windows); /* unlike any that is asked for: each is programmed once */
}

static lns_status load_card(void) {
    if (!card.powered) {
        const char *path = getenv(LNS_BLACKHOLE_SIM_VARIABLE);
        if (path == NULL || *path == '\0')
            return lns_fail(LNS_ERROR_UNSUPPORTED,
                            LNS_BLACKHOLE_SIM_VARIABLE " is not set; it names the file libttsim.so of the simulator");
        if (strlen(path) >= sizeof card.path)
            return lns_fail(LNS_ERROR_UNSUPPORTED, LNS_BLACKHOLE_SIM_VARIABLE " is longer than %zu bytes",
                            sizeof card.path - 1);
        strcpy(card.path, path);
    }
    const lns_status status = lns_library_load(&library);
    if (status != LNS_OK)
        return status;
    power_on();
    const uint32_t device = card.table.config_read(0, 0);
    if (device == PCI_BLACKHOLE)
        return LNS_OK;
    return lns_fail(LNS_ERROR_UNSUPPORTED, "%s simulates PCI device %04x:%04x, and Blackhole is 1e52:b140", card.path,
                    device & 0xFFFF, device >> 16);
}

lns_status lns_blackhole_open_sim(lns_blackhole_transport **transport) {
    *transport = NULL;
    if (atomic_flag_test_and_set(&card_taken))
        return lns_fail(LNS_ERROR_SYSTEM, "the simulated card is open already, and a process has one");
    lns_status status = load_card();
    lns_blackhole_transport *made = NULL;
    if (status == LNS_OK) {
        made = lns_calloc(1, sizeof *made);
        if (made == NULL)
            status = lns_fail_memory(sizeof *made);
    }
    if (status != LNS_OK) {
        atomic_flag_clear(&card_taken);
        return status;
    }
    made->operations = &operations;
    made->columns = LNS_BLACKHOLE_COLUMNS;
    card.strayed = 0;
    *transport = made;
    return LNS_OK;
}
