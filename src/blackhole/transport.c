/* SPDX-License-Identifier: Apache-2.0 */
#include "blackhole/transport.h"

#include "base/error.h"

lns_status lns_blackhole_check_range(uint64_t address, size_t size) {
    if (address % 4 == 0 && size % 4 == 0)
        return LNS_OK;
    return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "the card is reached in words of 4 bytes, not at 0x%llx for %zu",
                    (unsigned long long)address, size);
}
