/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of SuperPoint. */
#ifndef LENSING_WEIGHTS_SUPERPOINT_CONFIG_H
#define LENSING_WEIGHTS_SUPERPOINT_CONFIG_H

#include <stddef.h>

#include <lensing/status.h>

typedef struct lns_superpoint_config {
    int border_removal_distance; /* 0..240, 4 when the file does not say */
} lns_superpoint_config;

/* Parses config.json and refuses other models and architectures. `text` NULL: the defaults. */
lns_status lns_superpoint_config_parse(const char *text, size_t size, const char *label, lns_superpoint_config *config);
/* The same from a file. `path` NULL: the defaults. */
lns_status lns_superpoint_config_read(const char *path, lns_superpoint_config *config);

#endif
