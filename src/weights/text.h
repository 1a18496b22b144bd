/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LENSING_WEIGHTS_TEXT_H
#define LENSING_WEIGHTS_TEXT_H

/* Like sprintf to a new text, freed with lns_free(). NULL: no memory, and the error text is set. */
char *lns_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
