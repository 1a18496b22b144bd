/* SPDX-License-Identifier: Apache-2.0 */
/* Time for measurements. */
#ifndef LENSING_BASE_CLOCK_H
#define LENSING_BASE_CLOCK_H

/* Milliseconds of a clock that never goes back. */
double lns_clock_ms(void);

#endif
