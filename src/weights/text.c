/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"

char *lns_text_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    const size_t size = length >= 0 ? (size_t)length + 1 : 1;
    char *text = lns_alloc(size);
    if (text != NULL) {
        *text = '\0';
        vsnprintf(text, size, format, again);
    } else {
        lns_fail_memory(size);
    }
    va_end(again);
    return text;
}
