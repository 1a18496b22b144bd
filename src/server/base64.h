/* SPDX-License-Identifier: Apache-2.0 */
/* Reading base64 as binascii.a2b_base64(text, strict_mode=True) of CPython 3.12 does: the standard alphabet, nothing
 * else, and padding. */
#ifndef LENSING_SERVER_BASE64_H
#define LENSING_SERVER_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Space for the message of an error. */
#define BASE64_ERROR_SIZE 160

/* Space that decoding `size` characters may need. */
size_t base64_capacity(size_t size);

/* Writes the bytes to `out`, which may be `text` itself, and their number to `*out_size`. When `text` is no such text:
 * false, and `error` says why in Python's words, the type of the exception first. */
bool base64_decode(const char *text, size_t size, void *out, size_t *out_size, char error[BASE64_ERROR_SIZE]);

#endif
