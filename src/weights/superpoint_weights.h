/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of SuperPoint as float32, checked. */
#ifndef LENSING_WEIGHTS_SUPERPOINT_WEIGHTS_H
#define LENSING_WEIGHTS_SUPERPOINT_WEIGHTS_H

#include <lensing/status.h>
#include <lensing/weights.h>

/* The layers in the order of the network. */
enum {
    LNS_CONV1A, /* encoder.conv_blocks.0.conv_a: 1 -> 64, 3 x 3 */
    LNS_CONV1B, /* encoder.conv_blocks.0.conv_b: 64 -> 64 */
    LNS_CONV2A, /* encoder.conv_blocks.1.conv_a: 64 -> 64 */
    LNS_CONV2B,
    LNS_CONV3A, /* encoder.conv_blocks.2.conv_a: 64 -> 128 */
    LNS_CONV3B, /* 128 -> 128 */
    LNS_CONV4A,
    LNS_CONV4B,
    LNS_CONV_SCORE_A,      /* keypoint_decoder.conv_score_a: 128 -> 256, 3 x 3 */
    LNS_CONV_SCORE_B,      /* keypoint_decoder.conv_score_b: 256 -> 65, 1 x 1 */
    LNS_CONV_DESCRIPTOR_A, /* descriptor_decoder.conv_descriptor_a: 128 -> 256, 3 x 3 */
    LNS_CONV_DESCRIPTOR_B, /* descriptor_decoder.conv_descriptor_b: 256 -> 256, 1 x 1 */
    LNS_CONV_COUNT
};

/* One convolution. */
typedef struct lns_conv_weights {
    int outputs, inputs, kernel; /* kernel: 1 or 3 */
    const float *weight;         /* outputs x inputs x kernel x kernel */
    const float *bias;           /* outputs */
} lns_conv_weights;

typedef struct lns_superpoint_weights {
    lns_conv_weights conv[LNS_CONV_COUNT];
    int border_removal_distance; /* from config.json, else 4 */
    char *license;               /* one line */
} lns_superpoint_weights;

/* Reads and checks the files of a location. */
lns_status lns_superpoint_weights_load(const lns_weights_location *location, lns_superpoint_weights **weights);
/* The same from bytes in memory; `config` may be NULL. `label` names the safetensors bytes in errors. */
lns_status lns_superpoint_weights_parse(const void *safetensors, size_t size, const char *label, const char *config,
                                        size_t config_size, lns_superpoint_weights **weights);
void lns_superpoint_weights_close(lns_superpoint_weights **weights);

#endif
