/* SPDX-License-Identifier: Apache-2.0 */
#include "features/json.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/utf8.h"
#include "features/base64.h"
#include "features/npz.h"
#include "features/number.h"

#define KEYPOINT_DECIMALS 3
#define SCORE_DECIMALS 6
#define TIMING_DECIMALS 2

static void add_integer(lns_buffer *out, int64_t value) {
    char *room = lns_buffer_reserve(out, LNS_NUMBER_SIZE);
    if (room != NULL)
        out->size += lns_number_integer(value, room);
}

static void add_double(lns_buffer *out, double value) {
    char *room = lns_buffer_reserve(out, LNS_NUMBER_SIZE);
    if (room != NULL)
        out->size += lns_number_shortest(value, room);
}

static void add_rounded(lns_buffer *out, double value, int decimals) {
    char *room = lns_buffer_reserve(out, LNS_NUMBER_SIZE);
    if (room != NULL)
        out->size += lns_number_rounded(value, decimals, room);
}

static void add_escape(lns_buffer *out, unsigned char c) {
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char text[8];
    if (c == '"' || c == '\\')
        snprintf(text, sizeof text, "\\%c", c);
    else if (c < sizeof letters && letters[c] != 0)
        snprintf(text, sizeof text, "\\%c", letters[c]);
    else
        snprintf(text, sizeof text, "\\u%04x", c);
    lns_buffer_add_text(out, text);
}

void lns_json_add_string(lns_buffer *out, const char *text) {
    const char *end = text + strlen(text);
    lns_buffer_add(out, "\"", 1);
    for (const char *c = text; c < end;) {
        size_t bad;
        const size_t length = lns_utf8_length(c, (size_t)(end - c), &bad);
        if (length == 0) {
            lns_buffer_add_text(out, "\xef\xbf\xbd");
            c += bad;
        } else if ((unsigned char)*c < 0x20 || *c == '"' || *c == '\\') {
            add_escape(out, (unsigned char)*c);
            c += 1;
        } else {
            lns_buffer_add(out, c, length);
            c += length;
        }
    }
    lns_buffer_add(out, "\"", 1);
}

static void add_keypoints(lns_buffer *out, const lns_features *features) {
    /* Reserved once, so that the loop is nothing but conversions. */
    char *text = lns_buffer_reserve(out, features->count * (2 * LNS_NUMBER_SIZE + 4));
    if (text == NULL)
        return;
    char *end = text;
    for (size_t i = 0; i < features->count; i++) {
        const float *point = features->network_keypoints + 2 * i;
        if (i > 0)
            *end++ = ',';
        *end++ = '[';
        end += lns_number_rounded((double)point[0] * features->scale_x, KEYPOINT_DECIMALS, end);
        *end++ = ',';
        end += lns_number_rounded((double)point[1] * features->scale_y, KEYPOINT_DECIMALS, end);
        *end++ = ']';
    }
    out->size += (size_t)(end - text);
}

static void add_scores(lns_buffer *out, const lns_features *features) {
    char *text = lns_buffer_reserve(out, features->count * (LNS_NUMBER_SIZE + 1));
    if (text == NULL)
        return;
    char *end = text;
    for (size_t i = 0; i < features->count; i++) {
        if (i > 0)
            *end++ = ',';
        end += lns_number_rounded((double)features->scores[i], SCORE_DECIMALS, end);
    }
    out->size += (size_t)(end - text);
}

static void add_sizes_and_parameters(lns_buffer *out, const lns_features *features) {
    lns_buffer_add_text(out, ",\"original_size\":{\"height\":");
    add_integer(out, features->image_height);
    lns_buffer_add_text(out, ",\"width\":");
    add_integer(out, features->image_width);
    lns_buffer_add_text(out, "},\"image_size\":{\"height\":");
    add_integer(out, LNS_NETWORK_HEIGHT);
    lns_buffer_add_text(out, ",\"width\":");
    add_integer(out, LNS_NETWORK_WIDTH);
    lns_buffer_add_text(out, "},\"scale\":{\"x\":");
    add_double(out, features->scale_x);
    lns_buffer_add_text(out, ",\"y\":");
    add_double(out, features->scale_y);
    lns_buffer_add_text(out, "},\"params\":{\"max_keypoints\":");
    add_integer(out, features->max_keypoints);
    lns_buffer_add_text(out, ",\"keypoint_threshold\":");
    add_double(out, features->keypoint_threshold);
    lns_buffer_add_text(out, ",\"nms_radius\":");
    add_integer(out, features->nms_radius);
    lns_buffer_add_text(out, ",\"border_removal_distance\":");
    add_integer(out, features->border_removal_distance);
    lns_buffer_add_text(out, "}");
}

static void add_timing(lns_buffer *out, const lns_timing *timing) {
    lns_buffer_add_text(out, ",\"timing_ms\":{\"preprocess\":");
    add_rounded(out, timing->preprocess, TIMING_DECIMALS);
    lns_buffer_add_text(out, ",\"device_forward\":");
    add_rounded(out, timing->forward, TIMING_DECIMALS);
    lns_buffer_add_text(out, ",\"postprocess\":");
    add_rounded(out, timing->postprocess, TIMING_DECIMALS);
    lns_buffer_add_text(out, ",\"total\":");
    add_rounded(out, timing->preprocess + timing->forward + timing->postprocess, TIMING_DECIMALS);
    lns_buffer_add_text(out, "}");
}

static void add_text_or_null(lns_buffer *out, const char *text) {
    if (text != NULL)
        lns_json_add_string(out, text);
    else
        lns_buffer_add_text(out, "null");
}

static void add_weights(lns_buffer *out, const lns_features *features) {
    lns_buffer_add_text(out, ",\"weights\":{\"name\":");
    add_text_or_null(out, features->weights);
    lns_buffer_add_text(out, ",\"license\":");
    add_text_or_null(out, features->license);
    lns_buffer_add_text(out, "}");
}

/* The file is written at the end of the room for its text, and becomes text from there. */
static lns_status add_npz_as_base64(lns_buffer *out, const lns_array *array) {
    const size_t start = out->size, size = lns_npz_size(array, 1), text_size = LNS_BASE64_SIZE(size);
    if (lns_buffer_reserve(out, text_size) == NULL)
        return LNS_OK; /* the buffer remembers */
    out->size += text_size - size;
    const size_t file = out->size;
    const lns_status status = lns_npz_add(out, array, 1);
    if (status == LNS_OK)
        lns_base64_encode(out->data + file, size, out->data + start);
    out->size = start + text_size;
    return status;
}

static lns_status add_descriptors(lns_buffer *out, const lns_features *features) {
    lns_buffer_add_text(
        out, ",\"descriptors\":{\"format\":\"npz\",\"key\":\"descriptors\",\"dtype\":\"float16\",\"shape\":[");
    add_integer(out, (int64_t)features->count);
    lns_buffer_add_text(out, ",");
    add_integer(out, LNS_DESCRIPTOR_SIZE);
    lns_buffer_add_text(out, "],\"data\":\"");
    const lns_array array = {.name = "descriptors",
                             .type = "<f2",
                             .item_size = 2,
                             .dimensions = 2,
                             .shape = {features->count, LNS_DESCRIPTOR_SIZE},
                             .halves_of = features->descriptors};
    const lns_status status = add_npz_as_base64(out, &array);
    lns_buffer_add_text(out, "\"}");
    return status;
}

lns_status lns_json_write(const lns_features *features, const lns_json_shape *shape, char **text, size_t *size) {
    lns_buffer out = {0};
    *text = NULL;
    *size = 0;
    if (shape->descriptors && features->descriptors == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "JSON with descriptors: the features have none; detect with descriptors switched on");
    lns_buffer_add_text(&out, "{");
    if (shape->file != NULL) {
        lns_buffer_add_text(&out, "\"file\":");
        lns_json_add_string(&out, shape->file);
        lns_buffer_add_text(&out, ",");
    }
    lns_buffer_add_text(&out, "\"num_keypoints\":");
    add_integer(&out, (int64_t)features->count);
    lns_buffer_add_text(&out, ",\"keypoints\":[");
    add_keypoints(&out, features);
    lns_buffer_add_text(&out, "],\"scores\":[");
    add_scores(&out, features);
    lns_buffer_add_text(&out, "]");
    add_sizes_and_parameters(&out, features);
    if (shape->serving_path) {
        lns_buffer_add_text(&out, ",\"serving_path\":{\"traced\":");
        lns_buffer_add_text(&out, shape->traced ? "true" : "false");
        lns_buffer_add_text(&out, ",\"device_nms\":");
        lns_buffer_add_text(&out, shape->device_nms ? "true}" : "false}");
    }
    add_timing(&out, &features->timing_ms);
    if (shape->weights)
        add_weights(&out, features);
    if (shape->descriptors) {
        const lns_status status = add_descriptors(&out, features);
        if (status != LNS_OK) {
            lns_buffer_drop(&out);
            return status;
        }
    }
    lns_buffer_add(&out, "}", 2); /* with the NUL */
    void *bytes = NULL;
    size_t length = 0;
    const lns_status status = lns_buffer_take(&out, &bytes, &length);
    if (status != LNS_OK)
        return status;
    *text = bytes;
    *size = length - 1;
    return LNS_OK;
}

void lns_json_options_init(lns_json_options *options) {
    *options = (lns_json_options){.struct_size = sizeof *options};
}

lns_status lns_features_to_json(const lns_features *features, const lns_json_options *options, char **text,
                                size_t *size) {
    if (text != NULL)
        *text = NULL;
    if (size != NULL)
        *size = 0;
    if (features == NULL || text == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_features_to_json: features and text must not be NULL");
    lns_json_options used;
    lns_json_options_init(&used);
    lns_status status = lns_options_take(&used, sizeof used, options, "lns_json_options");
    if (status != LNS_OK)
        return status;
    const lns_json_shape shape = {.file = used.file,
                                  .descriptors = used.descriptors,
                                  .serving_path = used.serving_path,
                                  .weights = used.weights,
                                  .device_nms = features->device_nms};
    size_t length = 0;
    status = lns_json_write(features, &shape, text, &length);
    if (size != NULL)
        *size = length;
    return status;
}
