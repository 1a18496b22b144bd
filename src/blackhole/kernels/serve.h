/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the cores T0, T1 and T2. */
#ifndef LENSING_BLACKHOLE_SERVE_H
#define LENSING_BLACKHOLE_SERVE_H

#include "work.h"

/* Waits for core B, does what it asks for, and says so. `thread` is 0, 1 or 2. */
static inline __attribute__((noreturn)) void serve(uint32_t thread,
                                                   void (*convolve)(const volatile lns_bh_convolution *)) {
    uint32_t last = 0;
    control()->thread[thread].done = last;
    for (;;) {
        const uint32_t start = load_fresh(&control()->start);
        if (start == last)
            continue;
        const uint32_t kind = control()->kind, at = control()->at;
        if (kind == LNS_BH_CONVOLUTION)
            convolve((const volatile lns_bh_convolution *)at);
        else
            do_part(kind, at, thread);
        wait_for_thread();
        fence();
        last = start;
        control()->thread[thread].done = last;
    }
}

#endif
