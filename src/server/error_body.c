/* SPDX-License-Identifier: Apache-2.0 */
#include "error_body.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json_reader.h"

void error_body_text(text_buffer *buffer, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* A character cut in two at the end of the space is dropped. */
    size_t size = strlen(text);
    if (size == sizeof text - 1) {
        while (size > 0 && ((unsigned char)text[size - 1] & 0xC0) == 0x80)
            size--;
        if (size > 0 && (unsigned char)text[size - 1] >= 0xC0)
            size--;
    }
    text_buffer_add_text(buffer, "{\"detail\":");
    json_write_string(buffer, text, size);
    text_buffer_add_text(buffer, "}");
}

void error_list_open(error_list *list, const char *type, const char *place, const char *field, const char *message) {
    text_buffer *buffer = list->buffer;
    text_buffer_add_text(buffer, list->count++ == 0 ? "{\"detail\":[{\"type\":\"" : ",{\"type\":\"");
    text_buffer_add_text(buffer, type);
    text_buffer_add_text(buffer, "\",\"loc\":[\"");
    text_buffer_add_text(buffer, place);
    text_buffer_add_text(buffer, "\"");
    if (field != NULL) {
        text_buffer_add_text(buffer, ",");
        text_buffer_add_text(buffer, field);
    }
    text_buffer_add_text(buffer, "],\"msg\":\"");
    text_buffer_add_text(buffer, message);
    text_buffer_add_text(buffer, "\",\"input\":");
}

void error_list_close(error_list *list, const char *context) {
    if (context != NULL) {
        text_buffer_add_text(list->buffer, ",\"ctx\":");
        text_buffer_add_text(list->buffer, context);
    }
    text_buffer_add_text(list->buffer, "}");
}

void error_list_close_reason(error_list *list, const char *reason) {
    text_buffer_add_text(list->buffer, ",\"ctx\":{\"error\":");
    json_write_string(list->buffer, reason, strlen(reason));
    text_buffer_add_text(list->buffer, "}}");
}

void error_list_finish(error_list *list) {
    text_buffer_add_text(list->buffer, "]}");
}
