/* SPDX-License-Identifier: Apache-2.0 */
/* lensing info: what is here, and whether it would work. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

const char lns_cli_info_help[] = "Usage: lensing info [OPTION]...\n"
                                 "\n"
                                 "Shows the version, what this build can do, what this CPU can do, the Tenstorrent\n"
                                 "cards, and the weights that would be used, or why there are none.\n"
                                 "\n"
                                 "      --json       one JSON object\n"
                                 "  -w, --weights W  look at these weights: a folder, a .safetensors file or a\n"
                                 "                   Hugging Face repository[@revision]  [those of the program]\n"
                                 "  -h, --help       this text\n"
                                 "\n"
                                 "Examples:\n"
                                 "  lensing info\n"
                                 "  lensing info --json --weights superpoint.safetensors\n"
                                 "\n"
                                 "Exit code: 0, also without weights; 2 when LENSING_CPU names a kernel set that\n"
                                 "this CPU cannot run; 3 when --weights was given and these weights do not load.\n";

#define CARDS_SHOWN 16

typedef struct facts {
    const char *cpu_path; /* NULL: `cpu_problem` says why */
    char cpu_problem[512];
    char weights_problem[1024]; /* "" when `model` is filled */
    lns_status weights_status;
    lns_superpoint_info model;
    int threads;
    lns_blackhole_card cards[CARDS_SHOWN];
    size_t card_count;
} facts;

/* What is known of a card, which is nothing when it could not be asked. */
static void add_text_card(lns_cli_text *text, const lns_blackhole_card *card) {
    lns_cli_text_add(text, "card %-2d       ", card->id);
    if (card->kind[0] != '\0')
        lns_cli_text_add(text, "%s at %s, driver %s, ", card->kind, card->bus, card->driver);
    if (card->firmware[0] != '\0')
        lns_cli_text_add(text, "firmware %s, ", card->firmware);
    if (card->columns > 0)
        lns_cli_text_add(text, "%d columns, %d MHz, %.1f C, ", card->columns, card->clock_mhz, card->temperature);
    if (card->problem[0] != '\0')
        lns_cli_text_add(text, "cannot be used: %s\n", card->problem);
    else
        lns_cli_text_add(text, "%s\n", card->is_in_use ? "in use" : "free");
}

static void add_text_model(lns_cli_text *text, const lns_superpoint_info *model) {
    if (model->file == NULL)
        lns_cli_text_add(text, "weights       %s, inside the library\n", model->repository);
    else
        lns_cli_text_add(text, "weights       %s\n", model->file);
    if (model->file != NULL && strcmp(model->repository, model->file) != 0)
        lns_cli_text_add(text, "  asked for   %s%s%s\n", model->repository, model->revision != NULL ? "@" : "",
                         model->revision != NULL ? model->revision : "");
    lns_cli_text_add(text, "  border      %d pixels\n", (int)model->border_removal_distance);
    if (model->license != NULL)
        lns_cli_text_add(text, "  licence     %s\n", model->license);
}

static void add_text(lns_cli_text *text, const facts *found) {
    const char *features = lns_cpu_features();
    lns_cli_text_add(text, "lensing       %s\n", lns_version());
    lns_cli_text_add(text, "build         %s\n", lns_build_description());
    lns_cli_text_add(text, "cpu features  %s\n", features[0] != '\0' ? features : "none of those that matter here");
    if (found->cpu_path != NULL)
        lns_cli_text_add(text, "cpu path      %s\n", found->cpu_path);
    else
        lns_cli_text_add(text, "cpu path      none: %s\n", found->cpu_problem);
    lns_cli_text_add(text, "threads       %d\n", found->threads);
    for (size_t i = 0; i < found->card_count; i++)
        add_text_card(text, &found->cards[i]);
    if (found->card_count == 0)
        lns_cli_text_add(text, "cards         none\n");
    if (found->weights_problem[0] == '\0')
        add_text_model(text, &found->model);
    else
        lns_cli_text_add(text, "weights       none: %s\n", found->weights_problem);
}

static void add_member(lns_cli_text *text, const char *name, const char *value) {
    lns_cli_text_add(text, ",\"%s\":", name);
    lns_cli_text_json(text, value);
}

static void add_json_card(lns_cli_text *text, const lns_blackhole_card *card) {
    lns_cli_text_add(text, "{\"id\":%d", card->id);
    add_member(text, "kind", card->kind);
    add_member(text, "bus", card->bus);
    add_member(text, "driver", card->driver);
    add_member(text, "firmware", card->firmware);
    lns_cli_text_add(text, ",\"columns\":%d,\"clock_mhz\":%d,\"temperature\":", card->columns, card->clock_mhz);
    lns_cli_text_number(text, card->temperature, 1);
    lns_cli_text_add(text, ",\"in_use\":%s,\"problem\":", card->is_in_use ? "true" : "false");
    lns_cli_text_json(text, card->problem[0] != '\0' ? card->problem : NULL);
    lns_cli_text_add(text, "}");
}

static void add_json(lns_cli_text *text, const facts *found) {
    const lns_superpoint_info *model = &found->model;
    lns_cli_text_add(text, "{\"version\":");
    lns_cli_text_json(text, lns_version());
    add_member(text, "build", lns_build_description());
    add_member(text, "cpu_features", lns_cpu_features());
    add_member(text, "cpu_path", found->cpu_path);
    if (found->cpu_path == NULL)
        add_member(text, "cpu_error", found->cpu_problem);
    lns_cli_text_add(text, ",\"threads\":%d,\"cards\":[", found->threads);
    for (size_t i = 0; i < found->card_count; i++) {
        lns_cli_text_add(text, "%s", i > 0 ? "," : "");
        add_json_card(text, &found->cards[i]);
    }
    lns_cli_text_add(text, "],\"weights\":");
    if (found->weights_problem[0] != '\0') {
        lns_cli_text_add(text, "null");
        add_member(text, "weights_error", found->weights_problem);
    } else {
        lns_cli_text_add(text, "{\"file\":");
        lns_cli_text_json(text, model->file);
        add_member(text, "repository", model->repository);
        add_member(text, "revision", model->revision);
        add_member(text, "local_dir", model->local_dir);
        add_member(text, "license", model->license);
        add_member(text, "backend", model->backend);
        add_member(text, "precision", model->precision);
        lns_cli_text_add(text, ",\"border_removal_distance\":%d}", (int)model->border_removal_distance);
    }
    lns_cli_text_add(text, "}\n");
}

static void look_for_cards(facts *found) {
    if (lns_blackhole_list(found->cards, sizeof found->cards[0], CARDS_SHOWN, &found->card_count) != LNS_OK)
        found->card_count = 0;
    if (found->card_count > CARDS_SHOWN)
        found->card_count = CARDS_SHOWN;
}

static void look(const char *weights, facts *found, lns_superpoint **model) {
    found->cpu_path = lns_cpu_path();
    if (found->cpu_path == NULL)
        snprintf(found->cpu_problem, sizeof found->cpu_problem, "%s", lns_error_message());
    found->threads = lns_cli_cpu_count();
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = weights;
    found->weights_status = lns_superpoint_open(&options, model);
    if (found->weights_status == LNS_OK)
        found->weights_status = lns_superpoint_describe(*model, &found->model, sizeof found->model);
    if (found->weights_status != LNS_OK)
        snprintf(found->weights_problem, sizeof found->weights_problem, "%s", lns_error_message());
    else
        found->threads = found->model.threads;
}

static int code_of(const facts *found, bool weights_given) {
    if (found->cpu_path == NULL) {
        lns_cli_error("%s", found->cpu_problem);
        return LNS_CLI_USAGE;
    }
    if (found->weights_status != LNS_OK && weights_given) {
        lns_cli_error("%s", found->weights_problem);
        return LNS_CLI_WEIGHTS;
    }
    return LNS_CLI_OK;
}

int lns_cli_info(int argc, char **argv) {
    int json = 0;
    const char *weights = NULL;
    const lns_cli_option options[] = {
        {.kind = LNS_CLI_FLAG, .name = "json", .target = &json, .low = 1},
        lns_cli_weights_option(&weights),
        {.kind = LNS_CLI_END},
    };
    int count;
    int code;
    if (!lns_cli_parse(argc, argv, options, lns_cli_info_help, &count, &code))
        return code;
    if (count > 0) {
        lns_cli_error("info: takes no arguments, but got '%s'; see `lensing help info`", argv[1]);
        return LNS_CLI_USAGE;
    }
    facts found = {0};
    lns_superpoint *model = NULL;
    look_for_cards(&found);
    look(weights, &found, &model);
    lns_cli_text text = {0};
    if (json)
        add_json(&text, &found);
    else
        add_text(&text, &found);
    code = lns_cli_text_print(&text);
    lns_superpoint_close(&model);
    return code != LNS_CLI_OK ? code : code_of(&found, weights != NULL);
}
