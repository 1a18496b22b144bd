/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of errors in the form of the old server. */
#ifndef LENSING_SERVER_ERROR_BODY_H
#define LENSING_SERVER_ERROR_BODY_H

#include <stddef.h>

#include "buffer.h"

/* {"detail":"..."}; the text, at most 1023 bytes of it, is UTF-8. */
void error_body_text(text_buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* {"detail":[{"type":...,"loc":[...],"msg":...,"input":...,"ctx":...},...]} is written piece by piece. Start with
 * {buffer}. */
typedef struct error_list {
    text_buffer *buffer;
    size_t count;
} error_list;

/* Begins an item and writes it up to "input":, which is the caller's to write. `place` is "body" or "query"; `field`,
 * its second part, is JSON ("\"width\"", "17") or NULL; `type` and `message` need no escapes. */
void error_list_open(error_list *list, const char *type, const char *place, const char *field, const char *message);

/* Ends the item; `context` is the JSON of "ctx", or NULL. */
void error_list_close(error_list *list, const char *context);

/* Ends the item with "ctx":{"error":reason}. */
void error_list_close_reason(error_list *list, const char *reason);

/* Ends the list. */
void error_list_finish(error_list *list);

#endif
