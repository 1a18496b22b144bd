/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <string.h>

#include "base/error.h"

lns_status lns_options_take(void *options, size_t size, const void *given, const char *type) {
    if (given == NULL)
        return LNS_OK;
    size_t given_size;
    memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size || given_size > size)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "%s.struct_size is %zu, and this library knows up to %zu; call %s_init() first", type, given_size,
                        size, type);
    memcpy(options, given, given_size);
    return LNS_OK;
}
