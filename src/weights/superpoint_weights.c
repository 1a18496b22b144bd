/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/superpoint_weights.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "weights/builtin.h"
#include "weights/half.h"
#include "weights/safetensors.h"
#include "weights/superpoint_config.h"

/* The tensors take 5.2 MB as float32. */
#define FILE_LIMIT ((size_t)256 << 20)
#define LICENSE_LENGTH 200
#define NAME_SIZE 80
#define TEXT_SIZE 160

typedef struct layer {
    const char *name;
    int outputs, inputs, kernel;
} layer;

static const layer layers[LNS_CONV_COUNT] = {
    [LNS_CONV1A] = {"encoder.conv_blocks.0.conv_a", 64, 1, 3},
    [LNS_CONV1B] = {"encoder.conv_blocks.0.conv_b", 64, 64, 3},
    [LNS_CONV2A] = {"encoder.conv_blocks.1.conv_a", 64, 64, 3},
    [LNS_CONV2B] = {"encoder.conv_blocks.1.conv_b", 64, 64, 3},
    [LNS_CONV3A] = {"encoder.conv_blocks.2.conv_a", 128, 64, 3},
    [LNS_CONV3B] = {"encoder.conv_blocks.2.conv_b", 128, 128, 3},
    [LNS_CONV4A] = {"encoder.conv_blocks.3.conv_a", 128, 128, 3},
    [LNS_CONV4B] = {"encoder.conv_blocks.3.conv_b", 128, 128, 3},
    [LNS_CONV_SCORE_A] = {"keypoint_decoder.conv_score_a", 256, 128, 3},
    [LNS_CONV_SCORE_B] = {"keypoint_decoder.conv_score_b", 65, 256, 1},
    [LNS_CONV_DESCRIPTOR_A] = {"descriptor_decoder.conv_descriptor_a", 256, 128, 3},
    [LNS_CONV_DESCRIPTOR_B] = {"descriptor_decoder.conv_descriptor_b", 256, 256, 1},
};

/* The public part comes first. */
typedef struct owned_weights {
    lns_superpoint_weights weights;
    float *values; /* all tensors, one after the other */
} owned_weights;

static size_t weight_count(const layer *l) {
    return (size_t)l->outputs * (size_t)l->inputs * (size_t)l->kernel * (size_t)l->kernel;
}

static size_t all_values(void) {
    size_t total = 0;
    for (int i = 0; i < LNS_CONV_COUNT; i++)
        total += weight_count(&layers[i]) + (size_t)layers[i].outputs;
    return total;
}

/* "[64, 1, 3, 3]" */
static const char *shape_text(char *text, size_t size, int dimensions, const uint64_t *shape) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < dimensions && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i > 0 ? ", " : "", shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

static lns_status check_shape(const lns_tensor *tensor, const char *label, int dimensions, const uint64_t *shape) {
    int same = tensor->dimensions == dimensions;
    for (int i = 0; same && i < dimensions; i++)
        same = tensor->shape[i] == shape[i];
    if (same)
        return LNS_OK;
    char is[TEXT_SIZE];
    char should[TEXT_SIZE];
    return lns_fail(LNS_ERROR_WEIGHTS, "'%s': tensor '%s' has the shape %s; SuperPoint needs %s", label, tensor->name,
                    shape_text(is, sizeof is, tensor->dimensions, tensor->shape),
                    shape_text(should, sizeof should, dimensions, shape));
}

/* Index of the first value that is infinite or not a number; `count` when there is none. */
static size_t first_not_finite(const float *values, size_t count) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        found |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    if (!found)
        return count;
    for (size_t i = 0;; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        if ((bits & 0x7f800000u) == 0x7f800000u)
            return i;
    }
}

static void convert(const lns_tensor *tensor, float *values, size_t count) {
    switch (tensor->dtype) {
    case LNS_DTYPE_F16:
        lns_half_to_float(tensor->data, values, count);
        break;
    case LNS_DTYPE_BF16:
        lns_bfloat_to_float(tensor->data, values, count);
        break;
    default:
        lns_little_endian_to_float(tensor->data, values, count);
        break;
    }
}

/* Reads one tensor to `values`. */
static lns_status read_tensor(const lns_safetensors *file, const char *label, const char *name, int dimensions,
                              const uint64_t *shape, float *values) {
    const lns_tensor *tensor = lns_safetensors_find(file, name);
    if (tensor == NULL) {
        char should[TEXT_SIZE];
        return lns_fail(LNS_ERROR_WEIGHTS, "'%s' has no tensor '%s'; SuperPoint needs it with the shape %s", label,
                        name, shape_text(should, sizeof should, dimensions, shape));
    }
    const lns_status status = check_shape(tensor, label, dimensions, shape);
    if (status != LNS_OK)
        return status;
    if (tensor->dtype == LNS_DTYPE_OTHER)
        return lns_fail(LNS_ERROR_WEIGHTS, "'%s': tensor '%s' is not of type F32, F16 or BF16", label, name);
    size_t count = 1;
    for (int i = 0; i < dimensions; i++)
        count *= (size_t)shape[i];
    convert(tensor, values, count);
    const size_t bad = first_not_finite(values, count);
    if (bad < count)
        return lns_fail(LNS_ERROR_WEIGHTS, "'%s': value %zu of tensor '%s' is not a finite number", label, bad, name);
    return LNS_OK;
}

static lns_status read_layer(const lns_safetensors *file, const char *label, const layer *l, float *values,
                             lns_conv_weights *conv) {
    float *bias = values + weight_count(l);
    const uint64_t shape[] = {(uint64_t)l->outputs, (uint64_t)l->inputs, (uint64_t)l->kernel, (uint64_t)l->kernel};
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s.weight", l->name);
    lns_status status = read_tensor(file, label, name, 4, shape, values);
    snprintf(name, sizeof name, "%s.bias", l->name);
    if (status == LNS_OK)
        status = read_tensor(file, label, name, 1, shape, bias);
    *conv = (lns_conv_weights){l->outputs, l->inputs, l->kernel, values, bias};
    return status;
}

/* The text on one line, shortened between two UTF-8 characters. */
static char *one_line(const char *text) {
    const size_t length = strlen(text);
    size_t kept = length <= LICENSE_LENGTH ? length : LICENSE_LENGTH;
    while (kept < length && kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80)
        kept--;
    const char *end = kept < length ? "..." : "";
    char *line = lns_alloc(kept + 4);
    if (line == NULL)
        return NULL;
    snprintf(line, kept + 4, "%.*s%s", (int)kept, text, end);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    return line;
}

/* Whether the weights come from Magic Leap's repository: by name, or as a folder of the cache. */
static int is_magic_leap(const lns_weights_location *location) {
    return location != NULL && (strcmp(location->repository, LNS_DEFAULT_REPOSITORY) == 0 ||
                                (location->safetensors != NULL &&
                                 strstr(location->safetensors, "/models--magic-leap-community--superpoint/") != NULL));
}

static lns_status read_license(const lns_safetensors *file, const lns_weights_location *location, char **license) {
    const char *text = lns_safetensors_metadata(file, "license");
    if (text == NULL || *text == '\0')
        text = lns_safetensors_metadata(file, "licence");
    if (text == NULL || *text == '\0')
        text = is_magic_leap(location) ? "Magic Leap: academic or non-profit noncommercial research use only"
                                       : "not stated in the file";
    *license = one_line(text);
    return *license != NULL ? LNS_OK : lns_fail_memory(strlen(text));
}

static lns_status read_all(const lns_safetensors *file, const char *label, owned_weights *owned) {
    owned->values = lns_aligned_alloc(all_values() * sizeof(float));
    if (owned->values == NULL)
        return lns_fail_memory(all_values() * sizeof(float));
    float *values = owned->values;
    for (int i = 0; i < LNS_CONV_COUNT; i++) {
        const lns_status status = read_layer(file, label, &layers[i], values, &owned->weights.conv[i]);
        if (status != LNS_OK)
            return status;
        values += weight_count(&layers[i]) + (size_t)layers[i].outputs;
    }
    return LNS_OK;
}

/* `config` may be NULL, `location` too. */
static lns_status build(const void *bytes, size_t size, const char *label, const lns_superpoint_config *config,
                        const lns_weights_location *location, lns_superpoint_weights **weights) {
    *weights = NULL;
    owned_weights *owned = lns_calloc(1, sizeof *owned);
    if (owned == NULL)
        return lns_fail_memory(sizeof *owned);
    owned->weights.border_removal_distance = config->border_removal_distance;
    lns_safetensors *file;
    lns_status status = lns_safetensors_parse(bytes, size, label, &file);
    if (status == LNS_OK)
        status = read_all(file, label, owned);
    if (status == LNS_OK)
        status = read_license(file, location, &owned->weights.license);
    lns_safetensors_close(&file);
    *weights = &owned->weights;
    if (status != LNS_OK)
        lns_superpoint_weights_close(weights);
    return status;
}

lns_status lns_superpoint_weights_load(const lns_weights_location *location, lns_superpoint_weights **weights) {
    *weights = NULL;
    lns_superpoint_config config;
    lns_status status = lns_superpoint_config_read(location->config, &config);
    if (status != LNS_OK)
        return status;
    lns_builtin_weights builtin;
    if (location->safetensors == NULL && lns_builtin_weights_find(&builtin))
        return build(builtin.bytes, builtin.size, builtin.name, &config, location, weights);
    lns_file_map map;
    status = lns_file_map_open(location->safetensors, FILE_LIMIT, &map);
    if (status != LNS_OK)
        return status;
    status = build(map.bytes, map.size, location->safetensors, &config, location, weights);
    lns_file_map_close(&map);
    return status;
}

lns_status lns_superpoint_weights_parse(const void *safetensors, size_t size, const char *label, const char *config,
                                        size_t config_size, lns_superpoint_weights **weights) {
    *weights = NULL;
    lns_superpoint_config values;
    const lns_status status = lns_superpoint_config_parse(config, config_size, "config.json", &values);
    if (status != LNS_OK)
        return status;
    return build(safetensors, size, label, &values, NULL, weights);
}

void lns_superpoint_weights_close(lns_superpoint_weights **pointer) {
    owned_weights *owned = (owned_weights *)*pointer;
    *pointer = NULL;
    if (owned == NULL)
        return;
    lns_aligned_free(owned->values);
    lns_free(owned->weights.license);
    lns_free(owned);
}
