/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "synthetic_weights.h"

char synthetic_file_path[64];

static const char *const layer_names[LNS_CONV_COUNT] = {
    "encoder.conv_blocks.0.conv_a",  "encoder.conv_blocks.0.conv_b",         "encoder.conv_blocks.1.conv_a",
    "encoder.conv_blocks.1.conv_b",  "encoder.conv_blocks.2.conv_a",         "encoder.conv_blocks.2.conv_b",
    "encoder.conv_blocks.3.conv_a",  "encoder.conv_blocks.3.conv_b",         "keypoint_decoder.conv_score_a",
    "keypoint_decoder.conv_score_b", "descriptor_decoder.conv_descriptor_a", "descriptor_decoder.conv_descriptor_b",
};

static size_t weight_count(const lns_conv_weights *conv) {
    return (size_t)conv->outputs * (size_t)conv->inputs * (size_t)conv->kernel * (size_t)conv->kernel;
}

/* The header of a safetensors file: {"name": {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, ...} */
static void write_header(FILE *text, const lns_superpoint_weights *weights) {
    size_t offset = 0;
    for (int i = 0; i < LNS_CONV_COUNT; i++) {
        const lns_conv_weights *conv = &weights->conv[i];
        const size_t bias = offset + weight_count(conv) * sizeof(float);
        const size_t end = bias + (size_t)conv->outputs * sizeof(float);
        fprintf(text,
                "%s\"%s.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d,%d,%d],\"data_offsets\":[%zu,%zu]},"
                "\"%s.bias\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}",
                i == 0 ? "{" : ",", layer_names[i], conv->outputs, conv->inputs, conv->kernel, conv->kernel, offset,
                bias, layer_names[i], conv->outputs, bias, end);
        offset = end;
    }
    fputc('}', text);
}

int synthetic_file_write(const char *path) {
    lns_superpoint_weights *weights = synthetic_weights_make();
    char *header = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&header, &size);
    FILE *file = fopen(path, "wb");
    if (weights == NULL || text == NULL || file == NULL)
        return -1;
    write_header(text, weights);
    fclose(text);
    const uint64_t length = size;
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 255), file);
    fwrite(header, 1, size, file);
    for (int i = 0; i < LNS_CONV_COUNT; i++) {
        fwrite(weights->conv[i].weight, sizeof(float), weight_count(&weights->conv[i]), file);
        fwrite(weights->conv[i].bias, sizeof(float), (size_t)weights->conv[i].outputs, file);
    }
    free(header);
    synthetic_weights_free(weights);
    return fclose(file);
}

int synthetic_file_set_up(void **state) {
    (void)state;
    snprintf(synthetic_file_path, sizeof synthetic_file_path, "/tmp/lensing-test-%ld.safetensors", (long)getpid());
    return synthetic_file_write(synthetic_file_path);
}

int synthetic_file_tear_down(void **state) {
    (void)state;
    return unlink(synthetic_file_path);
}
