/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a selftest share. */
#ifndef LENSING_BLACKHOLE_SELFTEST_H
#define LENSING_BLACKHOLE_SELFTEST_H

#include <lensing/blackhole.h>

#include "blackhole/kmd_system.h"
#include "blackhole/transport.h"

struct lns_blackhole_selftest {
    const lns_kmd_system *system;
    int device_id;
    int with_reset;
    size_t next;                        /* place in the list of steps */
    lns_blackhole_transport *transport; /* NULL before the card is open, or when it could not be opened */
    size_t l1_size;                     /* bytes of each tile that are tested: all; tests take less */
    uint32_t *memory, *expected;        /* LNS_SELFTEST_PIECE bytes each */
};

#define LNS_SELFTEST_PIECE ((size_t)1 << 20)

/* A step writes what it saw into `detail`, a line. LNS_OK: it passed. Any other status: it failed, and
 * lns_error_message() says why. */
typedef lns_status (*lns_selftest_function)(lns_blackhole_selftest *selftest, char *detail, size_t size);

typedef struct lns_selftest_entry {
    const char *name, *question;
    lns_selftest_function run;
    int needs_card; /* skipped when the card could not be opened */
    /* Why not to run it, or NULL. */
    const char *(*reason_to_skip)(const lns_blackhole_selftest *selftest);
} lns_selftest_entry;

/* The steps, in their order; the last one has no name. */
extern const lns_selftest_entry lns_selftest_entries[];

/* For tests: another driver. */
lns_status lns_selftest_open_on(const lns_kmd_system *system, int device_id, int with_reset,
                                lns_blackhole_selftest **selftest);

#endif
