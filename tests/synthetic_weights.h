/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and a picture made of pseudo-random numbers, the same as tests/golden/synthetic.py makes, bit for bit. */
#ifndef LENSING_TESTS_SYNTHETIC_WEIGHTS_H
#define LENSING_TESTS_SYNTHETIC_WEIGHTS_H

#include <stdint.h>

#include "weights/superpoint_weights.h"

/* Number `index` of stream `stream`: splitmix64 from the state stream x 2^32, so index 0 is its first output. */
uint64_t synthetic_number(uint64_t stream, uint64_t index);

/* Makes all weights; border_removal_distance is 4. Free with synthetic_weights_free(). NULL: no memory. */
lns_superpoint_weights *synthetic_weights_make(void);
void synthetic_weights_free(lns_superpoint_weights *weights);

/* Fills a 480 x 640 frame with shades, blocks and noise. */
void synthetic_frame(uint8_t *frame);

#endif
