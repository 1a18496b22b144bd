/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a request target behind the question mark. */
#ifndef LENSING_SERVER_QUERY_H
#define LENSING_SERVER_QUERY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct query_parameter {
    const char *name;
    size_t name_size;
    const char *value; /* UTF-8 without NUL at the end; may hold NUL characters */
    size_t value_size;
} query_parameter;

typedef struct query_string {
    query_parameter *parameters;
    size_t count;
    char *text;
} query_string;

/* Reads "name=value&name=value", as urllib.parse.parse_qsl() does: + and %20 are blanks, a name without = has the empty
 * value, % without two hexadecimal digits is itself, bytes written with % that are no UTF-8 become U+FFFD, and a byte
 * beyond ASCII that stands there as it is is a character of Latin-1. false: no memory. query_free() must follow. */
bool query_read(query_string *query, const char *text, size_t size);

void query_free(query_string *query);

/* The last parameter of that name, NULL if there is none. */
const query_parameter *query_find(const query_string *query, const char *name);

#endif
