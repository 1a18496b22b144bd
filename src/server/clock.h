/* SPDX-License-Identifier: Apache-2.0 */
/* Time for deadlines and measurements. */
#ifndef LENSING_SERVER_CLOCK_H
#define LENSING_SERVER_CLOCK_H

#include <time.h>

/* Milliseconds of a clock that never goes back. */
static inline double clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
