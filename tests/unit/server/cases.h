/* SPDX-License-Identifier: Apache-2.0 */
/* The files of cases that the scripts here make: lines of fields between tabs, %XX for a byte. */
#ifndef LENSING_TESTS_CASES_H
#define LENSING_TESTS_CASES_H

#include <stddef.h>

#define CASE_FIELDS 3

typedef struct case_field {
    char *text; /* of exactly this size, so that a sanitizer sees every byte too many */
    size_t size;
} case_field;

/* The file of cases; set by main(). */
extern const char *cases_path;

/* Calls `check` with the fields of each line, those in `plain` (a bit each) with %XX replaced. Fails if there are less
 * than `least` lines. */
void for_each_case(size_t least, unsigned plain, void (*check)(case_field fields[CASE_FIELDS]));

/* Copy of exactly `size` bytes, for free(). */
char *copy_bytes(const void *bytes, size_t size);

#endif
