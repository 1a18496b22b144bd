/* SPDX-License-Identifier: Apache-2.0 */
/* Three windows: two uncached ones for registers and for what is small, to one tile and to many, where each word is a
 * transaction of its own in strict order; and one that combines writes into bursts. Writes through the third are pushed
 * to their end by a read at once: so nothing that is written or read later, through whichever window, overtakes them.
 * That a read waits for all writes before it is a rule of PCI Express which the card's PCIe tile keeps in both
 * orderings used here (table in TLBs.md of tt-isa-documentation). */
#include "blackhole/kmd.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "blackhole/grid.h"
#include "blackhole/kmd_card.h"
#include "blackhole/kmd_memory.h"
#include "blackhole/kmd_window.h"
#include "blackhole/telemetry.h"

/* Up to here single words cost less than a burst and the read behind it. */
#define SMALL 64

/* Reading this register tells a card that is gone from one whose memory holds ones. */
#define ALIVE 0x80030408u

#define PAUSES_LIMIT 64

typedef struct kmd_transport {
    lns_blackhole_transport base;
    lns_kmd_card card;
    lns_kmd_window words, casts, bursts;
    lns_kmd_memories memories;
    int has_unsettled; /* a write through `words` or `casts` may not have arrived */
    size_t last_word;  /* offset of the last word in `words` that was used */
} kmd_transport;

/* ---- Single words ------------------------------------------------------------------------------- */

static size_t offset_of(uint64_t address) {
    return (size_t)(address % LNS_KMD_WINDOW_SIZE);
}

/* How much of `size` bytes one window reaches. */
static size_t reach(uint64_t address, size_t size) {
    const size_t rest = LNS_KMD_WINDOW_SIZE - offset_of(address);
    return size < rest ? size : rest;
}

/* Waits until all earlier writes have arrived, by reading a word again. */
static lns_status push(kmd_transport *kmd) {
    const lns_blackhole_tile first = {LNS_TILE_FIRST_X, LNS_TILE_FIRST_Y};
    lns_status status = LNS_OK;
    uint32_t word;
    if (!kmd->words.has_target)
        status = lns_kmd_window_point(&kmd->card, &kmd->words, NULL, first, 0, LNS_KMD_ORDERING_STRICT);
    if (status == LNS_OK)
        lns_kmd_window_read(&kmd->words, kmd->last_word, &word, sizeof word);
    kmd->has_unsettled = 0;
    return status;
}

static lns_status settle(kmd_transport *kmd) {
    return kmd->has_unsettled ? push(kmd) : LNS_OK;
}

static lns_status write_words(kmd_transport *kmd, const lns_blackhole_tile *first, lns_blackhole_tile last,
                              uint64_t address, const void *data, size_t size) {
    lns_kmd_window *window = first != NULL ? &kmd->casts : &kmd->words;
    const lns_status status = lns_kmd_window_point(&kmd->card, window, first, last, address, LNS_KMD_ORDERING_STRICT);
    if (status != LNS_OK)
        return status;
    lns_kmd_window_write(window, offset_of(address), data, size);
    kmd->has_unsettled = 1;
    if (first == NULL)
        kmd->last_word = offset_of(address) + size - 4;
    return LNS_OK;
}

static lns_status read_words(kmd_transport *kmd, lns_blackhole_tile tile, uint64_t address, void *data, size_t size) {
    const lns_status status =
        lns_kmd_window_point(&kmd->card, &kmd->words, NULL, tile, address, LNS_KMD_ORDERING_STRICT);
    if (status != LNS_OK)
        return status;
    lns_kmd_window_read(&kmd->words, offset_of(address), data, size);
    kmd->last_word = offset_of(address) + size - 4;
    kmd->has_unsettled = 0;
    return LNS_OK;
}

/* ---- Bursts ------------------------------------------------------------------------------------- */

/* Gives what the processor has gathered to the bus, before anything else goes there. */
static void push_out(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_sfence();
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static lns_status write_burst(kmd_transport *kmd, const lns_blackhole_tile *first, lns_blackhole_tile last,
                              uint64_t address, const void *data, size_t size) {
    uint32_t word;
    lns_status status = settle(kmd);
    if (status == LNS_OK)
        status = lns_kmd_window_point(&kmd->card, &kmd->bursts, first, last, address, LNS_KMD_ORDERING_DEFAULT);
    if (status != LNS_OK)
        return status;
    lns_kmd_window_write(&kmd->bursts, offset_of(address), data, size);
    push_out();
    if (first != NULL)
        return push(kmd); /* a window at many tiles cannot be read */
    lns_kmd_window_read(&kmd->bursts, offset_of(address) + size - 4, &word, sizeof word);
    return LNS_OK;
}

static lns_status read_burst(kmd_transport *kmd, lns_blackhole_tile tile, uint64_t address, void *data, size_t size) {
    lns_status status = settle(kmd);
    if (status == LNS_OK)
        status = lns_kmd_window_point(&kmd->card, &kmd->bursts, NULL, tile, address, LNS_KMD_ORDERING_DEFAULT);
    if (status == LNS_OK)
        lns_kmd_window_read_memory(&kmd->bursts, offset_of(address), data, size);
    return status;
}

/* ---- The interface ------------------------------------------------------------------------------ */

static int goes_in_words(lns_blackhole_tile tile, uint64_t address, size_t size) {
    const int is_memory = lns_tile_is_dram(tile) || (lns_tile_is_tensix(tile) && address < LNS_TILE_L1_SIZE);
    return !is_memory || size <= SMALL;
}

static lns_status write_all(kmd_transport *kmd, const lns_blackhole_tile *first, lns_blackhole_tile last,
                            uint64_t address, const uint8_t *data, size_t size) {
    lns_status status = lns_blackhole_check_range(address, size);
    while (size > 0 && status == LNS_OK) {
        const size_t part = reach(address, size);
        status = goes_in_words(last, address, part) ? write_words(kmd, first, last, address, data, part)
                                                    : write_burst(kmd, first, last, address, data, part);
        address += part;
        data += part;
        size -= part;
    }
    return status;
}

static lns_status kmd_write(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address,
                            const void *data, size_t size) {
    return write_all((kmd_transport *)transport, NULL, tile, address, data, size);
}

static lns_status kmd_multicast(lns_blackhole_transport *transport, lns_blackhole_tile first, lns_blackhole_tile last,
                                uint64_t address, const void *data, size_t size) {
    return write_all((kmd_transport *)transport, &first, last, address, data, size);
}

/* All reads from a card that has left the bus give ones. */
static lns_status check_alive(kmd_transport *kmd, const void *data, size_t size) {
    const uint32_t ones = UINT32_MAX;
    uint32_t word;
    if (size < sizeof ones || memcmp(data, &ones, sizeof ones) != 0)
        return LNS_OK;
    const lns_blackhole_tile arc = {LNS_ARC_X, LNS_ARC_Y};
    const lns_status status = read_words(kmd, arc, ALIVE, &word, sizeof word);
    if (status == LNS_OK && word == ones)
        return lns_fail(LNS_ERROR_SYSTEM,
                        "device %d does not answer; a reset, or turning the machine off and on, may help",
                        kmd->card.id);
    return status;
}

static lns_status kmd_read(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, void *data,
                           size_t size) {
    kmd_transport *kmd = (kmd_transport *)transport;
    uint8_t *target = data;
    lns_status status = lns_blackhole_check_range(address, size);
    for (size_t left = size; left > 0 && status == LNS_OK;) {
        const size_t part = reach(address, left);
        status = goes_in_words(tile, address, part) ? read_words(kmd, tile, address, target, part)
                                                    : read_burst(kmd, tile, address, target, part);
        address += part;
        target += part;
        left -= part;
    }
    return status == LNS_OK ? check_alive(kmd, data, size) : status;
}

static lns_status kmd_idle(lns_blackhole_transport *transport, unsigned steps) {
    (void)transport;
    for (unsigned i = 0; i < steps && i < PAUSES_LIMIT; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
    return LNS_OK;
}

static lns_status kmd_pin(lns_blackhole_transport *transport, size_t size, lns_blackhole_host_memory *memory) {
    kmd_transport *kmd = (kmd_transport *)transport;
    return lns_kmd_memory_pin(&kmd->card, &kmd->memories, size, memory);
}

static void kmd_unpin(lns_blackhole_transport *transport, lns_blackhole_host_memory *memory) {
    kmd_transport *kmd = (kmd_transport *)transport;
    lns_kmd_memory_unpin(&kmd->card, &kmd->memories, memory);
}

static void kmd_close(lns_blackhole_transport *transport) {
    kmd_transport *kmd = (kmd_transport *)transport;
    lns_kmd_memory_unpin_all(&kmd->card, &kmd->memories);
    lns_kmd_window_close(&kmd->card, &kmd->bursts);
    lns_kmd_window_close(&kmd->card, &kmd->casts);
    lns_kmd_window_close(&kmd->card, &kmd->words);
    lns_kmd_card_close(&kmd->card);
    lns_free(kmd);
}

static const lns_blackhole_transport_operations operations = {
    .name = "kmd",
    .write = kmd_write,
    .read = kmd_read,
    .multicast = kmd_multicast,
    .idle = kmd_idle,
    .pin = kmd_pin,
    .unpin = kmd_unpin,
    .close = kmd_close,
};

/* ---- Opening ------------------------------------------------------------------------------------ */

static lns_status prepare(kmd_transport *kmd, lns_kmd_purpose purpose) {
    lns_blackhole_telemetry telemetry;
    lns_status status = lns_kmd_card_check(&kmd->card);
    if (status == LNS_OK && purpose == LNS_KMD_USE)
        status = lns_kmd_card_lock(&kmd->card);
    if (status == LNS_OK)
        status = lns_kmd_window_open(&kmd->card, LNS_KMD_UNCACHED, &kmd->words);
    if (status == LNS_OK)
        status = lns_kmd_window_open(&kmd->card, LNS_KMD_UNCACHED, &kmd->casts);
    if (status == LNS_OK)
        status = lns_kmd_window_open(&kmd->card, LNS_KMD_COMBINING, &kmd->bursts);
    if (status != LNS_OK || purpose == LNS_KMD_LOOK)
        return status;
    status = lns_blackhole_telemetry_read(&kmd->base, &telemetry);
    if (status == LNS_OK)
        status = lns_blackhole_telemetry_check(&telemetry);
    if (status == LNS_OK)
        status = lns_kmd_card_power_up(&kmd->card);
    if (status == LNS_OK)
        kmd->base.columns = telemetry.columns;
    return status;
}

lns_status lns_blackhole_open_kmd(const lns_kmd_system *system, int id, lns_kmd_purpose purpose,
                                  lns_blackhole_transport **transport) {
    *transport = NULL;
    kmd_transport *kmd = lns_calloc(1, sizeof *kmd);
    if (kmd == NULL)
        return lns_fail_memory(sizeof *kmd);
    kmd->base.operations = &operations;
    lns_status status = lns_kmd_card_open(system, id, &kmd->card);
    if (status != LNS_OK) {
        lns_free(kmd);
        return status;
    }
    status = prepare(kmd, purpose);
    if (status != LNS_OK) {
        kmd_close(&kmd->base);
        return status;
    }
    *transport = &kmd->base;
    return LNS_OK;
}
