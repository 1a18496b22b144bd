/* SPDX-License-Identifier: Apache-2.0 */
/* The `lensing` program: finds the command, and is its help. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const char main_help[] = "Usage: lensing COMMAND [OPTION]... [ARGUMENT]...\n"
                                "\n"
                                "SuperPoint: keypoints and descriptors of images, on the CPU or on a Tenstorrent\n"
                                "Blackhole card.\n"
                                "\n"
                                "Commands:\n"
                                "  detect IMAGE...     find keypoints; write JSON, NPZ or HDF5, draw pictures\n"
                                "  match A B           match the keypoints of two images\n"
                                "  fetch [REPOSITORY]  download weights from Hugging Face\n"
                                "  info                show version, CPU, cards, and which weights would be used\n"
                                "  bench               measure the speed\n"
                                "  serve               answer HTTP requests\n"
                                "  blackhole-selftest  check a Tenstorrent Blackhole card\n"
                                "  help [COMMAND]      this text, or all options of a command, with examples\n"
                                "\n"
                                "Options:\n"
                                "  -h, --help          this text; after a command, the help of that command\n"
                                "  -V, --version       the version\n"
                                "\n"
                                "Examples:\n"
                                "  lensing detect photo.jpg --draw keypoints.png\n"
                                "  lensing match left.jpg right.jpg --draw matches.png -o matches.json\n"
                                "  lensing serve --port 8000\n"
                                "\n"
                                "Weights are those that --weights, SP_WEIGHTS_DIR or HF_MODEL names, in this\n"
                                "order; else those inside the program, or if it was built without, those of\n"
                                "magic-leap-community/superpoint in the Hugging Face cache.\n"
                                "\n"
                                "Environment:\n"
                                "  LENSING_CPU          kernels to use: c, avx2 or avx512  [the best there are]\n"
                                "  TT_DEVICE_ID         which card --backend blackhole takes  [0]\n"
                                "  LENSING_BACKEND      what serve runs on without --backend  [cpu]\n"
                                "  LENSING_TTSIM        libttsim.so of the simulator to take in place of a card\n"
                                "  SP_WEIGHTS_DIR       folder with config.json and model.safetensors\n"
                                "  HF_MODEL             folder, .safetensors file or repository with the weights\n"
                                "  TT_WEIGHTS_REVISION  revision of the repository that HF_MODEL names;\n"
                                "                       alone, one of magic-leap-community/superpoint\n"
                                "  HF_HUB_CACHE         the cache of Hugging Face  [$HF_HOME/hub]\n"
                                "  HF_HOME              the folder above it  [~/.cache/huggingface]\n"
                                "  HF_TOKEN             sent along by fetch, for repositories that need it\n"
                                "  HF_ENDPOINT          server of fetch  [https://huggingface.co]\n"
                                "  HF_HUB_OFFLINE       1: fetch refuses to use the network\n"
                                "\n"
                                "Exit codes:\n"
                                "  0  all went well                    4  output could not be written\n"
                                "  1  at least one image failed        5  other errors\n"
                                "  2  wrong usage                    130  interrupted\n"
                                "  3  weights missing or wrong\n"
                                "Those of serve differ; `lensing help serve` states them.\n"
                                "\n"
                                "Data goes to standard output, everything else to standard error.\n";

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} command;

static const command commands[] = {
    {"detect", lns_cli_detect, lns_cli_detect_help}, {"match", lns_cli_match, lns_cli_match_help},
    {"fetch", lns_cli_fetch, lns_cli_fetch_help},    {"info", lns_cli_info, lns_cli_info_help},
    {"bench", lns_cli_bench, lns_cli_bench_help},    {"serve", lns_cli_serve, lns_cli_serve_help},
    {"blackhole-selftest", lns_cli_blackhole_selftest, lns_cli_blackhole_selftest_help},
};

static const command *find_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name) {
    char near[24];
    if (name[0] == '-')
        lns_cli_error("unknown option '%s'; options come after a command, see `lensing --help`", name);
    else if (lns_cli_suggest(name, "detect match fetch info bench serve blackhole-selftest help", near, sizeof near))
        lns_cli_error("unknown command '%s'; did you mean %s?", name, near);
    else
        lns_cli_error("unknown command '%s'; see `lensing --help`", name);
    return LNS_CLI_USAGE;
}

static int help(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return lns_cli_print(main_help);
    if (argc > 2) {
        lns_cli_error("help: takes one command, but got %d", argc - 1);
        return LNS_CLI_USAGE;
    }
    if (strcmp(argv[1], "help") == 0)
        return lns_cli_print(main_help);
    const command *asked = find_command(argv[1]);
    return asked != NULL ? lns_cli_print(asked->help) : unknown_command(argv[1]);
}

static int version(void) {
    char line[64];
    snprintf(line, sizeof line, "lensing %s\n", lns_version());
    return lns_cli_print(line);
}

int main(int argc, char **argv) {
    lns_cli_process_init();
    if (argc < 2) {
        lns_cli_error("no command given; see `lensing --help`");
        return LNS_CLI_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return lns_cli_print(main_help);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return version();
    const command *asked = find_command(name);
    return asked != NULL ? asked->run(argc - 1, argv + 1) : unknown_command(name);
}
