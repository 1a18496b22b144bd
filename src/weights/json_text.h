/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects out of untrusted text, as strict as RFC 8259. */
#ifndef LENSING_WEIGHTS_JSON_TEXT_H
#define LENSING_WEIGHTS_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/status.h>

typedef enum lns_json_keys {
    LNS_JSON_UNIQUE_KEYS,    /* an object that names a key twice is an error */
    LNS_JSON_LAST_KEY_COUNTS /* the last one counts, as in Python */
} lns_json_keys;

typedef enum lns_json_kind {
    LNS_JSON_NULL,
    LNS_JSON_BOOLEAN,
    LNS_JSON_INTEGER,
    LNS_JSON_REAL, /* a number with a point or an exponent */
    LNS_JSON_STRING,
    LNS_JSON_ARRAY,
    LNS_JSON_OBJECT
} lns_json_kind;

/* Values lie in the order of the text: an array or object is followed by what is in it. So the first value inside is
 * value + 1, the next one beside a value is value + value->span, and value + value->span is the end of what is inside.
 */
typedef struct lns_json_value {
    lns_json_kind kind;
    const char *key;  /* of a member of an object; NULL for other values */
    const char *text; /* of a string its characters, ending with NUL; of other values what is written */
    size_t size;      /* bytes of `text`, without that NUL */
    size_t span;      /* values from this one to its end: 1, and more for what has others inside */
} lns_json_value;

typedef struct lns_json_text {
    lns_json_value *values; /* values[0] is the object */
    size_t count;
    size_t capacity;
    char *strings; /* keys and strings of all values; a NUL character ends them */
} lns_json_text;

/* Parses text that must be one JSON object in UTF-8, with nothing but white space around it and no deep nesting.
 * `label` names it in errors. The result refers to `text` and is freed with lns_json_text_free(); after an error it is
 * empty. */
lns_status lns_json_text_parse(const char *text, size_t size, lns_json_keys keys, const char *label,
                               lns_json_text *json);
/* Harmless for an empty one, all of it 0. */
void lns_json_text_free(lns_json_text *json);

/* The last member of that key; NULL when there is none, or `object` is none. */
const lns_json_value *lns_json_find(const lns_json_value *object, const char *key);
/* Elements of an array or members of an object. */
size_t lns_json_count(const lns_json_value *value);
/* Value of an LNS_JSON_INTEGER; what does not fit is the nearest that does. */
int64_t lns_json_integer(const lns_json_value *value);

#endif
