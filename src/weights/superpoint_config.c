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

/* The value as text, for comparing and for messages. json-c gives NULL when it runs out of memory. */
static const char *text_of(json_object *value) {
    const char *text = json_object_get_string(value);
    return text != NULL ? text : "?";
}

/* Value of a member when it is there and not null. */
static json_object *member(json_object *object, const char *key) {
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return value;
}

static lns_status check_model_type(json_object *object, const char *label) {
    json_object *value = member(object, "model_type");
    if (value == NULL || strcmp(text_of(value), "superpoint") == 0)
        return LNS_OK;
    return lns_fail(LNS_ERROR_WEIGHTS, "'%s': \"model_type\" is '%.40s'; only \"superpoint\" is supported", label,
                    text_of(value));
}

static int is_number(json_object *value, int64_t expected) {
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) == expected;
}

/* The sizes of the network are fixed: other ones belong to another architecture. */
static lns_status check_sizes(json_object *object, const char *label) {
    static const struct {
        const char *key;
        int64_t value;
    } sizes[] = {{"decoder_hidden_size", 256}, {"keypoint_decoder_dim", 65}, {"descriptor_decoder_dim", 256}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        json_object *value = member(object, sizes[i].key);
        if (value != NULL && !is_number(value, sizes[i].value))
            return lns_fail(LNS_ERROR_WEIGHTS,
                            "'%s': \"%s\" is %.60s; this architecture is not supported, SuperPoint has %" PRId64, label,
                            sizes[i].key, text_of(value), sizes[i].value);
    }
    return LNS_OK;
}

static lns_status check_encoder(json_object *object, const char *label) {
    static const int64_t channels[] = {64, 64, 128, 128};
    json_object *value = member(object, "encoder_hidden_sizes");
    if (value == NULL)
        return LNS_OK;
    int same = json_object_is_type(value, json_type_array) && json_object_array_length(value) == 4;
    for (size_t i = 0; same && i < 4; i++)
        same = is_number(json_object_array_get_idx(value, i), channels[i]);
    if (same)
        return LNS_OK;
    return lns_fail(LNS_ERROR_WEIGHTS,
                    "'%s': \"encoder_hidden_sizes\" is %.60s; this architecture is not supported, SuperPoint has "
                    "[64, 64, 128, 128]",
                    label, text_of(value));
}

static lns_status read_border(json_object *object, const char *label, int *border) {
    json_object *value = member(object, "border_removal_distance");
    *border = BORDER_DEFAULT;
    if (value == NULL)
        return LNS_OK;
    const int64_t number = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : -1;
    if (number < 0 || number > BORDER_LIMIT)
        return lns_fail(LNS_ERROR_WEIGHTS,
                        "'%s': \"border_removal_distance\" is %.60s; it must be a whole number from 0 to %d", label,
                        text_of(value), BORDER_LIMIT);
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
    json_object *object;
    lns_status status = lns_json_text_parse(text, size, LNS_JSON_LAST_KEY_COUNTS, label, &object);
    if (status == LNS_OK)
        status = check_model_type(object, label);
    if (status == LNS_OK)
        status = check_encoder(object, label);
    if (status == LNS_OK)
        status = check_sizes(object, label);
    if (status == LNS_OK)
        status = read_border(object, label, &config->border_removal_distance);
    json_object_put(object);
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
