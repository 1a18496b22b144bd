/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects out of untrusted text, stricter than json-c alone. */
#ifndef LENSING_WEIGHTS_JSON_TEXT_H
#define LENSING_WEIGHTS_JSON_TEXT_H

#include <stddef.h>

#include <json.h>

#include <lensing/status.h>

typedef enum lns_json_keys {
    LNS_JSON_UNIQUE_KEYS,    /* an object that names a key twice is an error */
    LNS_JSON_LAST_KEY_COUNTS /* the last one counts, as in Python */
} lns_json_keys;

/* Parses text that must be one JSON object in UTF-8, with nothing but white space around it and no deep nesting.
 * `label` names it in errors. The object is freed with json_object_put(). */
lns_status lns_json_text_parse(const char *text, size_t size, lns_json_keys keys, const char *label,
                               json_object **object);

#endif
