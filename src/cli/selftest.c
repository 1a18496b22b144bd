/* SPDX-License-Identifier: Apache-2.0 */
/* lensing blackhole-selftest: what the owner of a card runs first. */
#include <string.h>

#include "cli.h"

const char lns_cli_blackhole_selftest_help[] =
    "Usage: lensing blackhole-selftest [OPTION]...\n"
    "\n"
    "Checks a Tenstorrent Blackhole card, one step after the other, and says of each\n"
    "what it found out: whether the card is there and free, its firmware, each tile,\n"
    "its memories, the ways between card and host, a convolution on all tiles, and\n"
    "the whole network against the CPU. It writes to all of the card's memories; the\n"
    "card must not be in use.\n"
    "\n"
    "      --device-id N  the card /dev/tenstorrent/N  [TT_DEVICE_ID, or 0]\n"
    "      --reset        restart the chip first; takes seconds\n"
    "  -w, --weights W    of the network, as for `lensing detect`  [from the\n"
    "                     environment; without any that step is skipped]\n"
    "      --json         one JSON object a line for each step\n"
    "  -h, --help         this text\n"
    "\n"
    "With LENSING_TTSIM=libttsim.so in the environment, the vendor's functional\n"
    "simulator is checked in place of a card. It takes minutes for the network.\n"
    "\n"
    "Examples:\n"
    "  lensing blackhole-selftest --reset\n"
    "  lensing blackhole-selftest --json --device-id 1\n"
    "\n"
    "Exit code: 0 no step failed, 2 wrong usage, 4 output could not be written,\n"
    "5 a step failed, 130 interrupted.\n";

static const char *const words[] = {"ok", "FAILED", "skipped"};

static int print_text(const lns_selftest_step *step) {
    lns_cli_text text = {0};
    lns_cli_text_add(&text, "%-7s  %-11s  %s\n", words[step->outcome], step->name, step->question);
    lns_cli_text_add(&text, "%22s%s", "", step->detail);
    if (step->outcome != LNS_SELFTEST_SKIPPED)
        lns_cli_text_add(&text, " (%.1f ms)", step->ms);
    lns_cli_text_add(&text, "\n");
    return lns_cli_text_print(&text);
}

static int print_json(const lns_selftest_step *step) {
    static const char *const names[] = {"passed", "failed", "skipped"};
    lns_cli_text text = {0};
    lns_cli_text_add(&text, "{\"step\":");
    lns_cli_text_json(&text, step->name);
    lns_cli_text_add(&text, ",\"question\":");
    lns_cli_text_json(&text, step->question);
    lns_cli_text_add(&text, ",\"outcome\":");
    lns_cli_text_json(&text, names[step->outcome]);
    lns_cli_text_add(&text, ",\"detail\":");
    lns_cli_text_json(&text, step->detail);
    lns_cli_text_add(&text, ",\"ms\":");
    lns_cli_text_number(&text, step->ms, 3);
    lns_cli_text_add(&text, "}\n");
    return lns_cli_text_print(&text);
}

static int take_steps(lns_blackhole_selftest *selftest, int json) {
    lns_selftest_step step;
    bool any_failed = false;
    for (;;) {
        if (lns_blackhole_selftest_next(selftest, &step, sizeof step) != LNS_OK) {
            lns_cli_report(NULL);
            return LNS_CLI_OTHER;
        }
        if (step.name == NULL)
            return any_failed ? LNS_CLI_OTHER : LNS_CLI_OK;
        any_failed |= step.outcome == LNS_SELFTEST_FAILED;
        const int code = json ? print_json(&step) : print_text(&step);
        if (code != LNS_CLI_OK)
            return code;
        if (lns_cli_interrupted())
            return LNS_CLI_INTERRUPTED;
    }
}

int lns_cli_blackhole_selftest(int argc, char **argv) {
    int json = 0, count, code;
    int64_t device_id = -1;
    lns_blackhole_selftest_options wanted;
    lns_blackhole_selftest_options_init(&wanted);
    const lns_cli_option options[] = {
        lns_cli_device_option(&device_id),
        lns_cli_weights_option(&wanted.weights),
        {.kind = LNS_CLI_FLAG, .name = "reset", .target = &wanted.with_reset, .low = 1},
        {.kind = LNS_CLI_FLAG, .name = "json", .target = &json, .low = 1},
        {.kind = LNS_CLI_END},
    };
    if (!lns_cli_parse(argc, argv, options, lns_cli_blackhole_selftest_help, &count, &code))
        return code;
    if (count > 0) {
        lns_cli_error("blackhole-selftest: takes no arguments, but got '%s'; the card goes with --device-id", argv[1]);
        return LNS_CLI_USAGE;
    }
    if (!lns_cli_check_device(device_id))
        return LNS_CLI_USAGE;
    lns_blackhole_selftest *selftest;
    wanted.device_id = (int)device_id;
    lns_cli_expect_card();
    const lns_status status = lns_blackhole_selftest_open(&wanted, &selftest);
    if (status != LNS_OK) {
        lns_cli_report(NULL);
        return lns_cli_exit_code(status);
    }
    code = take_steps(selftest, json);
    lns_blackhole_selftest_close(&selftest);
    return code;
}
