/* SPDX-License-Identifier: Apache-2.0 */
/* The driver tt-kmd with cards that do not exist: the ioctls, windows and pinned pages of kmd_abi.h behind the table of
 * kmd_system.h. Tiles have memory wherever it is touched; nothing computes.
 *
 * What the driver checks is checked here in the same way (chardev.c, memory.c, tlb.c and blackhole.c of tt-kmd 2.10.0):
 * a window is not freed while it is mapped, addresses of windows are multiples of their size, structs that carry their
 * size have the right one. On close() everything that a descriptor holds is given back, and counted in `dropped`. */
#ifndef LENSING_TESTS_FAKE_DRIVER_H
#define LENSING_TESTS_FAKE_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "blackhole/kmd_system.h"

#define FAKE_CARDS 2

typedef struct fake_card {
    /* What it is; set by fake_driver_reset(), to be changed by the test before the card is opened. */
    int is_present;
    int number; /* /dev/tenstorrent/NUMBER */
    uint16_t vendor, device;
    uint32_t columns;  /* mask; tag 34 */
    int tells_columns; /* tag 34 is in the table */
    int translates;    /* value of tag 40; -1: it is not in the table */
    uint32_t boot_status;
    uint32_t table_version, table_entries; /* entries 0: as many as there are */
    uint32_t table_address;
    int is_gone;         /* every read gives ones */
    int locked_by_other; /* somebody outside holds the lock of Lensing */
    int twin_tiles;      /* tile 6,5 has the memory of tile 5,5 */
    int turned_tiles;    /* tile 6,5 calls itself 5,6 */
    int half_dram;       /* the second 2 GiB of a memory are the first */
    int wide_multicast;  /* goes one column too far */
    int no_host;         /* the way to memory of the host leads nowhere */
    int reset_fails;     /* result of a reset is not 0 */
    int setup_fails;     /* result after a reset is not 0 */
    int reset_steps;     /* how often the mark of a reset is seen; -1: always */
    int number_after_reset;
    /* What happened to it. */
    int lock_holder; /* descriptor, or -1 */
    unsigned power;  /* flags that are asked for */
    int resets, setups;
} fake_card;

typedef struct fake_driver {
    fake_card cards[FAKE_CARDS];
    int is_loaded; /* /dev/tenstorrent is there */
    uint8_t major, minor, patch;
    int open_error;       /* errno of open(), when not 0 */
    int wants_contiguous; /* PIN_PAGES fails, as without an IOMMU and huge pages */
    const char *pids;     /* of /proc/driver/tenstorrent/N/pids; NULL: no such file */
    /* The call with this number, counted from 1 over all that can fail, fails with `fail_errno`; 0: none. */
    int fail_at, fail_errno;
    int calls;
    const char *failed_call; /* which it was */
    /* What is held. */
    int open_descriptors, windows, mappings, pins, buffers, allocations;
    int dropped; /* windows, pins, locks and power that close() had to give back */
    unsigned slept_ms;
} fake_driver;

extern fake_driver fake;
extern const lns_kmd_system fake_system;

/* One good card with the number 0, on driver 2.6.0; no memory of any tile. */
void fake_driver_reset(void);

/* Memory of a tile, as a core there would see it. */
void fake_driver_peek(int card, int x, int y, uint64_t address, void *data, size_t size);
void fake_driver_poke(int card, int x, int y, uint64_t address, const void *data, size_t size);

/* "" when nothing is held any more, else what. */
const char *fake_driver_leaks(void);

#endif
