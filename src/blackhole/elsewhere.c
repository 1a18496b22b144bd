/* SPDX-License-Identifier: Apache-2.0 */
/* Blackhole cards on systems other than Linux, which have no driver for them. */
#include <lensing/blackhole.h>

#include "base/error.h"

static lns_status refuse(void) {
    return lns_fail(LNS_ERROR_UNSUPPORTED, "Blackhole cards can be used on Linux only");
}

lns_status lns_blackhole_list(lns_blackhole_card *cards, size_t struct_size, size_t room, size_t *count) {
    (void)cards;
    (void)struct_size;
    (void)room;
    *count = 0;
    return LNS_OK;
}

lns_status lns_blackhole_selftest_open(int device_id, int with_reset, lns_blackhole_selftest **selftest) {
    (void)device_id;
    (void)with_reset;
    *selftest = NULL;
    return refuse();
}

lns_status lns_blackhole_selftest_next(lns_blackhole_selftest *selftest, lns_selftest_step *step, size_t struct_size) {
    (void)selftest;
    (void)step;
    (void)struct_size;
    return refuse();
}

void lns_blackhole_selftest_close(lns_blackhole_selftest **selftest) {
    (void)selftest;
}
