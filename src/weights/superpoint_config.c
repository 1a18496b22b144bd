/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/superpoint_config.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "weights/json_text.h"

#define CONFIG_LIMIT ((size_t)1 << 20)
#define BORDER_DEFAULT 4
#define BORDER_LIMIT 240 /* half the height of the network frame: nothing is left */

#define SHOWN 60 /* bytes of a value in a message */

/* Member of that key when it is there and not null. */
static const lns_json_value *member(const lns_json_value *object, const char *key) {
    const lns_json_value *value = lns_json_find(object, key);
    return value != NULL && value->kind != LNS_JSON_NULL ? value : NULL;
}

/* Bytes of a value to show. */
static int shown(const lns_json_value *value) {
    return value->size < SHOWN ? (int)value->size : SHOWN;
}

static lns_status check_model_type(const lns_json_value *object, const char *label) {
    const lns_json_value *value = member(object, "model_type");
    if (value == NULL || (value->kind == LNS_JSON_STRING && strcmp(value->text, "superpoint") == 0))
        return LNS_OK;
    return lns_fail(LNS_ERROR_WEIGHTS, "'%s': \"model_type\" is '%.*s'; only \"superpoint\" is supported", label,
                    shown(value), value->text);
}

static int is_number(const lns_json_value *value, int64_t expected) {
    return value->kind == LNS_JSON_INTEGER && lns_json_integer(value) == expected;
}

/* The sizes of the network are fixed: other ones belong to another architecture. */
static lns_status check_sizes(const lns_json_value *object, const char *label) {
    static const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"decoder_hidden_size", 256}, {"keypoint_decoder_dim", 65}, {"descriptor_decoder_dim", 256}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const lns_json_value *value = member(object, sizes[i].key);
        if (value != NULL && !is_number(value, sizes[i].value))
            return lns_fail(LNS_ERROR_WEIGHTS,
                            "'%s': \"%s\" is %.*s; this architecture is not supported, SuperPoint has %" PRId64, label,
                            sizes[i].key, shown(value), value->text, sizes[i].value);
    }
    return LNS_OK;
}

static lns_status check_encoder(const lns_json_value *object, const char *label) {
    static const int64_t channels[] = {64, 64, 128, 128};
    const lns_json_value *value = member(object, "encoder_hidden_sizes");
    if (value == NULL)
        return LNS_OK;
    int same = value->kind == LNS_JSON_ARRAY && value->span == 5; /* itself and 4 numbers */
    for (size_t i = 0; same && i < 4; i++)
        same = is_number(value + 1 + i, channels[i]);
    if (same)
        return LNS_OK;
    return lns_fail(LNS_ERROR_WEIGHTS,
                    "'%s': \"encoder_hidden_sizes\" is %.*s; this architecture is not supported, SuperPoint has "
                    "[64, 64, 128, 128]",
                    label, shown(value), value->text);
}

static lns_status read_border(const lns_json_value *object, const char *label, int *border) {
    const lns_json_value *value = member(object, "border_removal_distance");
    *border = BORDER_DEFAULT;
    if (value == NULL)
        return LNS_OK;
    const int64_t number = value->kind == LNS_JSON_INTEGER ? lns_json_integer(value) : -1;
    if (number < 0 || number > BORDER_LIMIT)
        return lns_fail(LNS_ERROR_WEIGHTS,
                        "'%s': \"border_removal_distance\" is %.*s; it must be a whole number from 0 to %d", label,
                        shown(value), value->text, BORDER_LIMIT);
    *border = (int)number;
    return LNS_OK;
}

lns_status lns_superpoint_config_parse(const char *text, size_t size, const char *label,
                                       lns_superpoint_config *config) {
    config->border_removal_distance = BORDER_DEFAULT;
    if (text == NULL)
        return LNS_OK;
    if (size > CONFIG_LIMIT)
        return lns_fail(LNS_ERROR_LIMIT, "'%s' has %zu bytes, more than the limit of %zu", label, size, CONFIG_LIMIT);
    lns_json_text json;
    lns_status status = lns_json_text_parse(text, size, LNS_JSON_LAST_KEY_COUNTS, label, &json);
    if (status == LNS_OK)
        status = check_model_type(json.values, label);
    if (status == LNS_OK)
        status = check_encoder(json.values, label);
    if (status == LNS_OK)
        status = check_sizes(json.values, label);
    if (status == LNS_OK)
        status = read_border(json.values, label, &config->border_removal_distance);
    lns_json_text_free(&json);
    return status;
}

lns_status lns_superpoint_config_read(const char *path, lns_superpoint_config *config) {
    if (path == NULL)
        return lns_superpoint_config_parse(NULL, 0, "", config);
    void *text;
    size_t size;
    lns_status status = lns_file_read(path, CONFIG_LIMIT, &text, &size);
    if (status == LNS_OK)
        status = lns_superpoint_config_parse(text, size, path, config);
    lns_free(text);
    return status;
}
