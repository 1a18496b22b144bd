/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#define MESSAGE_SIZE 1024

static _Thread_local char message[MESSAGE_SIZE];

const char *lns_status_name(lns_status status) {
    switch (status) {
    case LNS_OK:
        return "ok";
    case LNS_ERROR_INVALID_ARGUMENT:
        return "invalid-argument";
    case LNS_ERROR_OUT_OF_MEMORY:
        return "out-of-memory";
    case LNS_ERROR_IO:
        return "io";
    case LNS_ERROR_FORMAT:
        return "format";
    case LNS_ERROR_CORRUPT:
        return "corrupt";
    case LNS_ERROR_LIMIT:
        return "limit";
    case LNS_ERROR_WEIGHTS:
        return "weights";
    case LNS_ERROR_NETWORK:
        return "network";
    case LNS_ERROR_UNSUPPORTED:
        return "unsupported";
    case LNS_ERROR_SYSTEM:
        return "system";
    }
    return "unknown";
}

const char *lns_error_message(void) {
    return message;
}

lns_status lns_fail(lns_status status, const char *format, ...) {
    /* Formatted aside first: an argument may be the current message. */
    char text[MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t i = 0;
    for (; text[i] != '\0'; i++) {
        const unsigned char c = (unsigned char)text[i];
        message[i] = (c < 0x20 || c == 0x7f) ? ' ' : text[i];
    }
    message[i] = '\0';
    return status;
}

lns_status lns_fail_memory(size_t size) {
    return lns_fail(LNS_ERROR_OUT_OF_MEMORY, "out of memory: %zu bytes could not be allocated", size);
}
