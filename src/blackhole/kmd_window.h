/* SPDX-License-Identifier: Apache-2.0 */
/* A window of 2 MiB through which the host reads and writes the address space of tiles. */
#ifndef LENSING_BLACKHOLE_KMD_WINDOW_H
#define LENSING_BLACKHOLE_KMD_WINDOW_H

#include "blackhole/kmd_card.h"
#include "blackhole/transport.h"

/* Uncached: each access is a transaction of its own, in order. Combining: writes are gathered into bursts. */
typedef enum lns_kmd_caching { LNS_KMD_UNCACHED, LNS_KMD_COMBINING } lns_kmd_caching;

typedef struct lns_kmd_window {
    uint32_t id;
    volatile uint8_t *memory; /* NULL: the window is not open */
    lns_kmd_configure_window target;
    int has_target;
} lns_kmd_window;

lns_status lns_kmd_window_open(const lns_kmd_card *card, lns_kmd_caching caching, lns_kmd_window *window);
void lns_kmd_window_close(const lns_kmd_card *card, lns_kmd_window *window);

/* Points the window at the 2 MiB around `address` in one tile, or, when `first` is not NULL, in all Tensix tiles from
 * `first` to `last`. `ordering` as in kmd_abi.h. */
lns_status lns_kmd_window_point(const lns_kmd_card *card, lns_kmd_window *window, const lns_blackhole_tile *first,
                                lns_blackhole_tile last, uint64_t address, uint8_t ordering);

/* Words of 4 bytes at `offset` of the window, once each, ascending. Memory on the host need not be aligned. */
void lns_kmd_window_write(lns_kmd_window *window, size_t offset, const void *data, size_t size);
void lns_kmd_window_read(const lns_kmd_window *window, size_t offset, void *data, size_t size);
/* The same in the fewest accesses; not for registers. */
void lns_kmd_window_read_memory(const lns_kmd_window *window, size_t offset, void *data, size_t size);

#endif
