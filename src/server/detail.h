/* SPDX-License-Identifier: Apache-2.0 */
/* The body {"detail":"..."} as a buffer of its own. */
#ifndef LENSING_SERVER_DETAIL_H
#define LENSING_SERVER_DETAIL_H

#include <stddef.h>

/* malloc'ed; NULL when memory is missing. */
char *detail_body(const char *detail, size_t *size);

#endif
