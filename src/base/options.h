/* SPDX-License-Identifier: Apache-2.0 */
/* Options structs that may grow: each begins with its size as the caller's headers have it. */
#ifndef LENSING_BASE_OPTIONS_H
#define LENSING_BASE_OPTIONS_H

#include <stddef.h>

#include <lensing/status.h>

/* Copies what the caller's version of the struct has over `options`, `size` bytes that hold the defaults. `given` may be
 * NULL. Refused: a size of less than the field itself (the _init function was not called) or of more than this library
 * knows. `type` names the struct in the error. */
lns_status lns_options_take(void *options, size_t size, const void *given, const char *type);

#endif
