/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "weights/safetensors.h"
#include "weights/superpoint_weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches the data of a tensor; it must lie inside the file. */
static void touch(const lns_tensor *tensor, const uint8_t *data, size_t size) {
    const uint8_t *first = tensor->data;
    if (first < data || tensor->size > size || (size_t)(first - data) > size - tensor->size)
        abort();
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < tensor->size; i++)
        sum = (uint8_t)(sum + first[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"a", "b", "weight", "encoder.conv_blocks.0.conv_a.weight"};
    lns_safetensors *file;
    if (lns_safetensors_parse(data, size, "fuzz", &file) == LNS_OK) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const lns_tensor *tensor = lns_safetensors_find(file, names[i]);
            if (tensor != NULL)
                touch(tensor, data, size);
        }
        lns_safetensors_metadata(file, "license");
    } else if (file != NULL || *lns_error_message() == '\0') {
        abort();
    }
    lns_safetensors_close(&file);
    lns_superpoint_weights *weights;
    lns_superpoint_weights_parse(data, size, "fuzz", NULL, 0, &weights);
    lns_superpoint_weights_close(&weights);
    return 0;
}
