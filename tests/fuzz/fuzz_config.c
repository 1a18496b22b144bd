/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "weights/superpoint_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lns_superpoint_config config;
    if (lns_superpoint_config_parse((const char *)data, size, "fuzz", &config) == LNS_OK &&
        (config.border_removal_distance < 0 || config.border_removal_distance > 240))
        abort();
    return 0;
}
