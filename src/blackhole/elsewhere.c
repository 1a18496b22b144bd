/* SPDX-License-Identifier: Apache-2.0 */
/* Blackhole cards on systems other than Linux, which have no driver for them. */
#include <lensing/blackhole.h>

#include <string.h>

#include "base/error.h"

void lns_blackhole_selftest_options_init(lns_blackhole_selftest_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->device_id = -1;
}

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

lns_status lns_blackhole_selftest_open(const lns_blackhole_selftest_options *options,
                                       lns_blackhole_selftest **selftest) {
    (void)options;
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
