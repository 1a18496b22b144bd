/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of a selftest: one step after the other, each with its time and what came of it. */
#include "blackhole/selftest.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "blackhole/device.h"
#include "blackhole/grid.h"

void lns_blackhole_selftest_options_init(lns_blackhole_selftest_options *options) {
    if (options == NULL)
        return;
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->device_id = -1;
}

static lns_status set_up(lns_blackhole_selftest *selftest, const lns_blackhole_selftest_options *options) {
    selftest->with_reset = options->with_reset;
    selftest->l1_size = LNS_TILE_L1_SIZE;
    selftest->grid = (lns_blackhole_grid){LNS_BLACKHOLE_COLUMNS, LNS_BLACKHOLE_ROWS};
    selftest->memory = lns_alloc(LNS_SELFTEST_PIECE);
    selftest->expected = lns_alloc(LNS_SELFTEST_PIECE);
    if (selftest->memory == NULL || selftest->expected == NULL)
        return lns_fail_memory(LNS_SELFTEST_PIECE);
    selftest->weights = options->weights != NULL ? lns_strdup(options->weights) : NULL;
    if (options->weights != NULL && selftest->weights == NULL)
        return lns_fail_memory(strlen(options->weights));
    return LNS_OK;
}

lns_status lns_selftest_open_on(const lns_kmd_system *system, const lns_blackhole_selftest_options *given,
                                const lns_selftest_entry *last, lns_blackhole_selftest **result) {
    lns_blackhole_selftest_options options;
    int number;
    if (result == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_blackhole_selftest_open: selftest must not be NULL");
    *result = NULL;
    lns_blackhole_selftest_options_init(&options);
    lns_status status = lns_options_take(&options, sizeof options, given, "lns_blackhole_selftest_options");
    if (status == LNS_OK)
        status = lns_blackhole_choose_device(options.device_id, &number);
    if (status != LNS_OK)
        return status;
    lns_blackhole_selftest *selftest = lns_calloc(1, sizeof *selftest);
    if (selftest == NULL)
        return lns_fail_memory(sizeof *selftest);
    selftest->system = system;
    selftest->device_id = number;
    selftest->last = last;
    status = set_up(selftest, &options);
    if (status != LNS_OK)
        lns_blackhole_selftest_close(&selftest);
    *result = selftest;
    return status;
}

void lns_blackhole_selftest_close(lns_blackhole_selftest **selftest) {
    if (selftest == NULL || *selftest == NULL)
        return;
    lns_blackhole_close(&(*selftest)->transport);
    lns_free((*selftest)->memory);
    lns_free((*selftest)->expected);
    lns_free((*selftest)->weights);
    lns_free(*selftest);
    *selftest = NULL;
}

static void take_step(lns_blackhole_selftest *selftest, const lns_selftest_entry *entry, lns_selftest_step *step) {
    const char *reason = entry->reason_to_skip != NULL ? entry->reason_to_skip(selftest) : NULL;
    if (reason == NULL && entry->needs_card && selftest->transport == NULL)
        reason = "the card is not open";
    if (reason != NULL) {
        step->outcome = LNS_SELFTEST_SKIPPED;
        snprintf(step->detail, sizeof step->detail, "%s", reason);
        return;
    }
    const double start = lns_clock_ms();
    if (entry->run(selftest, step->detail, sizeof step->detail) != LNS_OK) {
        step->outcome = LNS_SELFTEST_FAILED;
        snprintf(step->detail, sizeof step->detail, "%s", lns_error_message());
    }
    step->ms = lns_clock_ms() - start;
}

/* NULL after the last. */
static const lns_selftest_entry *next_entry(lns_blackhole_selftest *selftest) {
    const lns_selftest_entry *entry = &lns_selftest_entries[selftest->next];
    if (entry->name != NULL) {
        selftest->next++;
        return entry;
    }
    entry = selftest->last;
    selftest->last = NULL;
    return entry;
}

lns_status lns_blackhole_selftest_next(lns_blackhole_selftest *selftest, lns_selftest_step *result,
                                       size_t struct_size) {
    lns_selftest_step step = {.outcome = LNS_SELFTEST_PASSED};
    if (selftest == NULL || result == NULL || struct_size == 0 || struct_size > sizeof step)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                        "lns_blackhole_selftest_next: selftest and step must not be NULL, struct_size must be "
                        "sizeof(lns_selftest_step) = %zu",
                        sizeof step);
    const lns_selftest_entry *entry = next_entry(selftest);
    if (entry != NULL) {
        step.name = entry->name;
        step.question = entry->question;
        take_step(selftest, entry, &step);
    }
    memcpy(result, &step, struct_size);
    return LNS_OK;
}
