/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a selftest share. */
#ifndef LENSING_BLACKHOLE_SELFTEST_H
#define LENSING_BLACKHOLE_SELFTEST_H

#include <lensing/blackhole.h>

#include "blackhole/kmd_system.h"
#include "blackhole/plan.h"
#include "blackhole/transport.h"

typedef struct lns_selftest_entry lns_selftest_entry;

struct lns_blackhole_selftest {
    const lns_kmd_system *system;
    int device_id;
    int with_reset;
    char *weights;                      /* as in the options */
    const lns_selftest_entry *last;     /* the step after those of the list */
    size_t next;                        /* place in the list of steps */
    lns_blackhole_transport *transport; /* NULL before the card is open, or when it could not be opened */
    size_t l1_size;                     /* bytes of each tile that are tested: all; tests take less */
    lns_blackhole_grid grid;            /* of the network: 480 x 640 pixels; tests take less */
    int cores_run;                      /* not 0: they have run a program */
    uint32_t *memory, *expected;        /* LNS_SELFTEST_PIECE bytes each */
};

#define LNS_SELFTEST_PIECE ((size_t)1 << 20)

/* A step writes what it saw into `detail`, a line. LNS_OK: it passed. Any other status: it failed, and
 * lns_error_message() says why. */
typedef lns_status (*lns_selftest_function)(lns_blackhole_selftest *selftest, char *detail, size_t size);

struct lns_selftest_entry {
    const char *name, *question;
    lns_selftest_function run;
    int needs_card; /* skipped when the card could not be opened */
    /* Why not to run it, or NULL. */
    const char *(*reason_to_skip)(const lns_blackhole_selftest *selftest);
};

/* The steps that this folder knows, in their order; the last one has no name. */
extern const lns_selftest_entry lns_selftest_entries[];

/* The convolution of `convolution`, in selftest_convolution.c. */
lns_status lns_selftest_convolve(lns_blackhole_selftest *selftest, char *detail, size_t size);

/* The step that needs the network on the CPU too, in superpoint/blackhole_selftest.c. */
extern const lns_selftest_entry lns_selftest_network;

/* As lns_blackhole_selftest_open(), on a driver; `last` is the step after those of the list. */
lns_status lns_selftest_open_on(const lns_kmd_system *system, const lns_blackhole_selftest_options *options,
                                const lns_selftest_entry *last, lns_blackhole_selftest **selftest);

#endif
