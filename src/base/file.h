/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. lns_file_save() is in lensing/features.h. */
#ifndef LENSING_BASE_FILE_H
#define LENSING_BASE_FILE_H

#include <stddef.h>

#include <lensing/status.h>

/* Reads a regular file of at most `limit` bytes. `*bytes` is freed with lns_free(); an empty file gives a buffer and size
 * 0. Folders and special files are refused, so that a name never blocks. */
lns_status lns_file_read(const char *path, size_t limit, void **bytes, size_t *size);

/* A file read through memory mapping, for large files that are used in place. */
typedef struct lns_file_map {
    const void *bytes;
    size_t size;
} lns_file_map;
lns_status lns_file_map_open(const char *path, size_t limit, lns_file_map *map);
void lns_file_map_close(lns_file_map *map);

/* Name of a temporary file beside `path`, unique to this process and call; freed with lns_free(). NULL: no memory. */
char *lns_file_temporary_name(const char *path);

#endif
