/* SPDX-License-Identifier: Apache-2.0 */
/* lensing fetch: weights from a Hugging Face server into its cache. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

const char lns_cli_fetch_help[] = "Usage: lensing fetch [OPTION]... [REPOSITORY[@REVISION]]\n"
                                  "\n"
                                  "Downloads config.json and model.safetensors of a Hugging Face repository into\n"
                                  "the Hugging Face cache, where every command finds them, and prints the folder.\n"
                                  "What is there already is not loaded again; a broken-off download continues.\n"
                                  "Without REPOSITORY: HF_MODEL with TT_WEIGHTS_REVISION, else\n" LNS_DEFAULT_REPOSITORY
                                  ", whose licence allows academic or\n"
                                  "non-profit noncommercial research only.\n"
                                  "\n"
                                  "  -q, --quiet  no progress bar and no remarks\n"
                                  "  -h, --help   this text\n"
                                  "\n"
                                  "Environment:\n"
                                  "  HF_HUB_CACHE, HF_HOME  place of the cache  [~/.cache/huggingface/hub]\n"
                                  "  HF_TOKEN               access token, else the one that `hf auth login` saved\n"
                                  "  HF_ENDPOINT            server  [https://huggingface.co]\n"
                                  "  HF_HUB_OFFLINE         1: never download\n"
                                  "\n"
                                  "Examples:\n"
                                  "  lensing fetch\n"
                                  "  lensing fetch " LNS_DEFAULT_REPOSITORY "@main\n"
                                  "  lensing detect --weights \"$(lensing fetch)\" photo.jpg\n"
                                  "\n"
                                  "Exit code: 0; 2 for a wrong argument; 3 when the download failed, 4 when the\n"
                                  "cache cannot be written; 130 when interrupted.\n";

typedef struct display {
    lns_cli_progress progress;
    char label[64];
} display;

static int on_progress(void *user, const char *file, uint64_t received, uint64_t total) {
    display *shown = user;
    snprintf(shown->label, sizeof shown->label, "%s", file);
    lns_cli_progress_update(&shown->progress, received, total);
    return lns_cli_interrupted();
}

/* Folder of the file, which can be given as --weights. */
static int print_folder(const char *file) {
    lns_cli_text text = {0};
    const char *slash = strrchr(file, '/');
    lns_cli_text_append(&text, file, slash != NULL ? (size_t)(slash - file) : 0);
    lns_cli_text_append(&text, "\n", 1);
    return lns_cli_text_print(&text);
}

static int fetch(const char *repository, bool quiet) {
    display shown;
    lns_fetch_options options;
    lns_fetch_options_init(&options);
    options.repository = repository;
    options.progress = on_progress;
    options.progress_user = &shown;
    lns_weights_location *location = NULL;
    snprintf(shown.label, sizeof shown.label, "fetch");
    lns_cli_progress_start(&shown.progress, shown.label, true, !quiet);
    const lns_status status = lns_weights_fetch(&options, &location);
    lns_cli_progress_stop(&shown.progress);
    if (status != LNS_OK) {
        lns_cli_report("fetch");
        return lns_cli_interrupted() ? LNS_CLI_INTERRUPTED : lns_cli_exit_code(status);
    }
    if (!quiet && strcmp(location->repository, LNS_DEFAULT_REPOSITORY) == 0)
        lns_cli_error("fetch: the licence of these weights allows academic or non-profit noncommercial research only");
    const int code = print_folder(location->safetensors);
    lns_weights_location_close(&location);
    return code;
}

int lns_cli_fetch(int argc, char **argv) {
    int quiet = 0;
    const lns_cli_option options[] = {
        {.kind = LNS_CLI_FLAG, .name = "quiet", .letter = 'q', .target = &quiet, .low = 1},
        {.kind = LNS_CLI_END},
    };
    int count;
    int code;
    if (!lns_cli_parse(argc, argv, options, lns_cli_fetch_help, &count, &code))
        return code;
    if (count > 1) {
        lns_cli_error("fetch: takes one repository at a time, but got %d; see `lensing help fetch`", count);
        return LNS_CLI_USAGE;
    }
    return fetch(count == 1 ? argv[1] : NULL, quiet != 0);
}
