/* SPDX-License-Identifier: Apache-2.0 */
/* How the host reaches a Blackhole card: bytes at (tile, address), and memory of the host that the card can reach.
 *
 * Two implementations: a card behind the tt-kmd driver, and the functional simulator of the vendor (sim.h). What lies
 * above this interface is the same for both.
 *
 * Tiles are named by their translated NoC coordinates: firmware maps them so that harvested columns have no number.
 * Tensix tiles are x = 1..7 and 10..14 (up to 16 on a card with more columns), y = 2..11.
 *
 * A transport belongs to one thread at a time. Every function that fails leaves the transport usable for close(), and
 * its text in lns_error_message(). */
#ifndef LENSING_BLACKHOLE_TRANSPORT_H
#define LENSING_BLACKHOLE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

typedef struct lns_blackhole_tile {
    uint8_t x, y;
} lns_blackhole_tile;

/* Tensix columns that every card has: x = 1..7 and 10..14, and rows y = 2..11. */
#define LNS_BLACKHOLE_COLUMNS 12
#define LNS_BLACKHOLE_ROWS 10

/* Where the card finds the memory of the host, as the destination of a NoC request. */
#define LNS_BLACKHOLE_PCIE_X 19
#define LNS_BLACKHOLE_PCIE_Y 24

/* Memory of the host that the card reads and writes over the NoC, at noc_address of the PCIe tile. */
typedef struct lns_blackhole_host_memory {
    void *data; /* begins as zero; at the start of a page; belongs to the transport */
    size_t size;
    uint64_t noc_address;
} lns_blackhole_host_memory;

typedef struct lns_blackhole_transport lns_blackhole_transport;

typedef struct lns_blackhole_transport_operations {
    const char *name; /* "kmd" or "sim" */
    /* Addresses and sizes are multiples of 4: L1 from 0, memory-mapped registers from 0xFFB00000, or, for a DRAM tile,
     * its memory. Register addresses are written and read in whole 32-bit words, once each and in ascending order.
     * Writes to one tile arrive in the order of the calls, so the release of a core after the write of its program is
     * safe. A read returns after every earlier write to the same tile has arrived. */
    lns_status (*write)(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, const void *data,
                        size_t size);
    lns_status (*read)(lns_blackhole_transport *transport, lns_blackhole_tile tile, uint64_t address, void *data,
                       size_t size);
    /* Writes the same to every Tensix tile of the rectangle from `first` to `last`, both included; columns 8 and 9,
     * which have no Tensix tiles, are skipped. Those to one rectangle arrive in the order of the calls. They are not
     * ordered with writes to single tiles: read from a tile to know that one has arrived there. */
    lns_status (*multicast)(lns_blackhole_transport *transport, lns_blackhole_tile first, lns_blackhole_tile last,
                            uint64_t address, const void *data, size_t size);
    /* To be called in loops that wait for the card. The simulator runs `steps` steps and stands still otherwise; a card
     * runs by itself, and this only keeps the loop from burning power. */
    lns_status (*idle)(lns_blackhole_transport *transport, unsigned steps);
    /* Fills `memory` with at least `size` bytes; `size` is greater than 0. unpin() frees it and clears the struct; no
     * tile may use it any more. close() unpins what is left. */
    lns_status (*pin)(lns_blackhole_transport *transport, size_t size, lns_blackhole_host_memory *memory);
    void (*unpin)(lns_blackhole_transport *transport, lns_blackhole_host_memory *memory);
    /* Ends the use of the card and frees the transport. Does not stop cores: reset them first. */
    void (*close)(lns_blackhole_transport *transport);
} lns_blackhole_transport_operations;

/* Every transport begins with this. */
struct lns_blackhole_transport {
    const lns_blackhole_transport_operations *operations;
    int columns; /* Tensix columns of this card, at least LNS_BLACKHOLE_COLUMNS */
};

/* What every write and read begins with. LNS_ERROR_INVALID_ARGUMENT: not whole words. */
lns_status lns_blackhole_check_range(uint64_t address, size_t size);

static inline lns_status lns_blackhole_write32(lns_blackhole_transport *transport, lns_blackhole_tile tile,
                                               uint64_t address, uint32_t value) {
    return transport->operations->write(transport, tile, address, &value, sizeof value);
}

static inline lns_status lns_blackhole_read32(lns_blackhole_transport *transport, lns_blackhole_tile tile,
                                              uint64_t address, uint32_t *value) {
    return transport->operations->read(transport, tile, address, value, sizeof *value);
}

#endif
