/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"

const char *cases_path;

char *copy_bytes(const void *bytes, size_t size) {
    char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

static size_t replace_escapes(char *text, size_t size) {
    char *out = text;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '%') {
            *out++ = text[i];
            continue;
        }
        const char digits[3] = {text[i + 1], text[i + 2], '\0'};
        *out++ = (char)strtol(digits, NULL, 16);
        i += 2;
    }
    return (size_t)(out - text);
}

void for_each_case(size_t least, unsigned plain, void (*check)(case_field fields[CASE_FIELDS])) {
    FILE *file = fopen(cases_path, "r");
    assert_non_null(file);
    char *line = NULL;
    size_t space = 0, count = 0;
    for (ssize_t length; (length = getline(&line, &space, file)) > 0; count++) {
        case_field fields[CASE_FIELDS] = {0};
        char *at = line;
        line[length - 1] = '\0';
        for (int i = 0; i < CASE_FIELDS && at != NULL; i++) {
            char *tab = strchr(at, '\t');
            size_t size = tab != NULL ? (size_t)(tab - at) : strlen(at);
            if (plain >> i & 1)
                size = replace_escapes(at, size);
            fields[i] = (case_field){copy_bytes(at, size), size};
            at = tab != NULL ? tab + 1 : NULL;
        }
        check(fields);
        for (int i = 0; i < CASE_FIELDS; i++)
            free(fields[i].text);
    }
    free(line);
    fclose(file);
    assert_in_range(count, least, SIZE_MAX);
}
