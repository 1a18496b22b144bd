/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the JSON of a request: accepts what json.loads() of CPython 3.12 accepts in bytes, and rejects the rest with
 * its messages and positions, because clients of the old server see them. Beyond RFC 8259 that means UTF-16 and UTF-32
 * with and without a byte order mark, NaN, Infinity and -Infinity, lone surrogates, and names given twice (the last one
 * counts). */
#ifndef LENSING_SERVER_JSON_READER_H
#define LENSING_SERVER_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

/* A body that is nested deeper or has more values and names is refused: neither is needed for any field, and both cost
 * memory that a small body should not be able to take. */
#define JSON_DEPTH 1000
#define JSON_NODES 100000
/* Longest integer in digits, the limit of Python's int(). */
#define JSON_INTEGER_DIGITS 4300

typedef enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_INTEGER,
    JSON_REAL, /* NaN, Infinity, -Infinity too */
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_NAME,
    JSON_REPEATED_NAME, /* a later one with the text of an earlier one; only json_write_value() tells them apart */
} json_kind;

/* Values in the order of the text: an array is followed by its elements, an object by its names, each followed by its
 * value. */
typedef struct json_node {
    /* Of a number as written; of a string and a name the characters, escapes replaced. UTF-8, but a lone surrogate is
     * kept as the three bytes that UTF-8 would give it. No NUL at the end. */
    char *text;
    size_t size;
    uint32_t end; /* index of the node after this value; of a name: of its value */
    uint8_t kind; /* json_kind */
} json_node;

typedef struct json_document {
    json_node *nodes; /* nodes[0] is the whole */
    uint32_t count;
    uint32_t capacity;
    char *converted;   /* the body as UTF-8, if it came in UTF-16 or UTF-32 */
    const char *error; /* after JSON_INVALID: the message of CPython, */
    size_t position;   /* and where, in characters from 0 */
} json_document;

typedef enum json_result {
    JSON_READ,
    JSON_INVALID,
    JSON_UNREADABLE, /* not in the encoding it seems to be in, too deep, or a longer integer than Python reads */
    JSON_TOO_MANY,   /* more than JSON_NODES */
    JSON_NO_MEMORY,
} json_result;

/* Reads `size` bytes at `body`. The document refers to them, and escapes are replaced in them: they must outlive it,
 * and are of no other use afterwards. Whatever the result, json_document_free() must follow. */
json_result json_document_read(json_document *document, char *body, size_t size);

void json_document_free(json_document *document);

/* The value of the last `name` of the object `object`, NULL if it has none. */
const json_node *json_find(const json_document *document, const json_node *object, const char *name);

/* Writes a value as json.dumps(value, ensure_ascii=False, separators=(",", ":")) does: numbers as Python shows them.
 * What that cannot express in valid UTF-8 JSON is written all the same: a number that is not finite as the string
 * "NaN", "Infinity", "-Infinity"; a lone surrogate as its escape. */
void json_write_value(json_document *document, const json_node *node, text_buffer *buffer);

/* The same for one string. */
void json_write_string(text_buffer *buffer, const char *text, size_t size);

/* The number written in `text`, which has the form of a JSON number, or of one of the three names; beyond the largest
 * double it is infinite. false: no memory. */
bool json_number(const char *text, size_t size, double *value);

#endif
