/* SPDX-License-Identifier: Apache-2.0 */
/* Setting the error text of the calling thread. */
#ifndef LENSING_BASE_ERROR_H
#define LENSING_BASE_ERROR_H

#include <stddef.h>

#include <lensing/status.h>

/* Sets the error text of this thread and returns `status`, so that a function can end with
 * `return lns_fail(LNS_ERROR_IO, "...", ...)`. Line breaks and control characters in the result become spaces: a file
 * name must not forge a second line. */
lns_status lns_fail(lns_status status, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The same for a failed allocation of `size` bytes. */
lns_status lns_fail_memory(size_t size) __attribute__((cold));

#endif
