/* SPDX-License-Identifier: Apache-2.0 */
/* lensing match: which keypoints of two pictures belong together. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

const char lns_cli_match_help[] = "Usage: lensing match [OPTION]... A B\n"
                                  "\n"
                                  "Finds keypoints in the images A and B and the pairs that are nearest to each\n"
                                  "other in both directions. Writes one JSON object: for each image what `lensing\n"
                                  "detect` writes, then the matches as [index in A, index in B, similarity].\n"
                                  "A or B may be - for standard input.\n"
                                  "\n"
                                  "Output:\n"
                                  "  -o, --output FILE|-         where to write; - is standard output  [-]\n"
                                  "  -d, --draw FILE             a PNG of both images with the matches drawn\n"
                                  "      --descriptors           put descriptors into the JSON\n"
                                  "      --no-descriptors        leave them out  [the default]\n"
                                  "  -q, --quiet                 as in detect; match never shows a progress bar\n"
                                  "\n"
                                  "Which matches to keep:\n"
                                  "      --ratio R               the distance is below R times that of the second\n"
                                  "                              best in B; above 0 to 1; 1: no test  [1]\n"
                                  "      --min-similarity S      the dot product of the descriptors is at least S;\n"
                                  "                              -1 to 1  [-1]\n"
                                  "\n"
                                  "What to find, and the network (see `lensing help detect`):\n"
                                  "  -n, --max-keypoints N       -1 to 307200  [1024]\n"
                                  "      --keypoint-threshold T  0 to 1  [0.005]\n"
                                  "      --nms-radius R          0 to 32  [4]\n"
                                  "      --exif MODE             ignore or apply  [ignore]\n"
                                  "      --max-pixels N          refuse larger images; 0: no limit  [178956970]\n"
                                  "  -w, --weights W             folder, .safetensors file or repository[@revision]\n"
                                  "  -t, --threads N             0 to 256; 0: one for each CPU  [0]\n"
                                  "      --precision P           fp32 or bf16  [fp32]\n"
                                  "      --backend B             cpu or blackhole  [cpu]\n"
                                  "      --device-id N           the card /dev/tenstorrent/N  [TT_DEVICE_ID, or 0]\n"
                                  "  -h, --help                  this text\n"
                                  "\n"
                                  "Examples:\n"
                                  "  lensing match left.jpg right.jpg --draw matches.png -o matches.json\n"
                                  "  lensing match left.jpg right.jpg --ratio 0.8 --min-similarity 0.7\n"
                                  "\n"
                                  "Exit code: as for `lensing detect`; 1 when A or B cannot be read.\n";

typedef struct matching {
    lns_cli_settings settings;
    const char *output;
    const char *draw;
    double ratio;
    double min_similarity;
    int descriptors;
    lns_cli_inputs inputs;
    lns_image_options image;
    lns_detect_options detect;
    lns_cli_detector *detector;
    lns_superpoint *model;
    lns_cli_found found[2];
    lns_matches *matches;
} matching;

static int check(matching *job) {
    const char *outputs[] = {job->output, job->draw};
    for (size_t i = 0; i < 2; i++) {
        if (outputs[i] == NULL)
            continue;
        for (size_t j = 0; j < 2; j++) {
            if (!lns_cli_is_special(outputs[i]) && lns_cli_same_file(outputs[i], job->inputs.items[j].path)) {
                lns_cli_error("%s %s: would replace an image that is to be read", i == 0 ? "-o" : "--draw", outputs[i]);
                return LNS_CLI_USAGE;
            }
        }
    }
    if (job->output != NULL && job->draw != NULL && strcmp(job->output, job->draw) == 0 &&
        !lns_cli_is_special(job->draw)) {
        lns_cli_error("-o and --draw name the same file, '%s'", job->draw);
        return LNS_CLI_USAGE;
    }
    return LNS_CLI_OK;
}

static int detect_both(matching *job) {
    int code = LNS_CLI_OK;
    for (int i = 0; i < 2 && lns_cli_detector_next(job->detector, &job->found[i]); i++) {
        if (job->found[i].features == NULL) {
            lns_cli_report_message(lns_cli_input_title(job->inputs.items[i].path), job->found[i].message);
            code = LNS_CLI_IMAGE;
        }
    }
    return lns_cli_interrupted() ? LNS_CLI_INTERRUPTED : code;
}

static int find_matches(matching *job) {
    lns_match_options options;
    lns_match_options_init(&options);
    options.ratio = (float)job->ratio;
    options.min_similarity = (float)job->min_similarity;
    options.threads = (int)job->settings.model.threads;
    const lns_status status =
        lns_match_features(job->found[0].features, job->found[1].features, &options, &job->matches);
    if (status == LNS_OK)
        return LNS_CLI_OK;
    lns_cli_report(NULL);
    return lns_cli_exit_code(status);
}

static lns_status add_image(const matching *job, int which, lns_cli_text *text) {
    lns_json_options options;
    lns_json_options_init(&options);
    options.file = job->inputs.items[which].path;
    options.descriptors = job->descriptors;
    options.weights = 1;
    char *object = NULL;
    size_t size = 0;
    const lns_status status = lns_features_to_json(job->found[which].features, &options, &object, &size);
    if (status == LNS_OK) {
        lns_cli_text_add(text, which == 0 ? "{\"first\":" : ",\"second\":");
        lns_cli_text_append(text, object, size);
        lns_buffer_free(object);
    }
    return status;
}

static void add_matches(const matching *job, lns_cli_text *text) {
    lns_cli_text_add(text, ",\"match_params\":{\"ratio\":");
    lns_cli_text_number(text, job->ratio, 6);
    lns_cli_text_add(text, ",\"min_similarity\":");
    lns_cli_text_number(text, job->min_similarity, 6);
    lns_cli_text_add(text, "},\"num_matches\":%zu,\"matches\":[", job->matches->count);
    for (size_t i = 0; i < job->matches->count; i++) {
        const lns_match *match = &job->matches->items[i];
        lns_cli_text_add(text, "%s[%lu,%lu,", i == 0 ? "" : ",", (unsigned long)match->first,
                         (unsigned long)match->second);
        lns_cli_text_number(text, match->similarity, 6);
        lns_cli_text_add(text, "]");
    }
    lns_cli_text_add(text, "]}\n");
}

static int write_json(const matching *job) {
    lns_cli_text text = {0};
    lns_status status = add_image(job, 0, &text);
    if (status == LNS_OK)
        status = add_image(job, 1, &text);
    int code;
    if (status != LNS_OK) {
        lns_cli_report(NULL);
        code = lns_cli_exit_code(status);
    } else {
        add_matches(job, &text);
        if (!lns_cli_text_good(&text))
            code = lns_cli_out_of_memory();
        else if (job->output == NULL)
            code = lns_cli_write_stdout(text.bytes, text.size);
        else
            code = lns_cli_file_save(job->output, text.bytes, text.size);
    }
    lns_cli_text_free(&text);
    return code;
}

static int draw(const matching *job) {
    void *png = NULL;
    size_t size = 0;
    const lns_status status = lns_draw_matches(job->found[0].plane, job->found[0].features, job->found[1].plane,
                                               job->found[1].features, job->matches, &png, &size);
    if (status != LNS_OK) {
        lns_cli_report("--draw");
        return lns_cli_exit_code(status);
    }
    const int code = lns_cli_file_save(job->draw, png, size);
    lns_buffer_free(png);
    return code;
}

static int run(matching *job) {
    lns_cli_settings_image(&job->settings, &job->image);
    lns_cli_settings_detect(&job->settings, &job->detect);
    const lns_cli_detector_options options = {.inputs = &job->inputs,
                                              .image = &job->image,
                                              .detect = &job->detect,
                                              .threads = job->settings.model.threads,
                                              .keep_planes = true};
    int code = lns_cli_detector_start(&options, &job->detector);
    if (code == LNS_CLI_OK)
        code = lns_cli_open_model(&job->settings.model, &job->model);
    if (code == LNS_CLI_OK) {
        lns_cli_detector_use(job->detector, job->model);
        code = detect_both(job);
    }
    if (code == LNS_CLI_OK)
        code = find_matches(job);
    if (code == LNS_CLI_OK && job->draw != NULL)
        code = draw(job);
    if (code == LNS_CLI_OK)
        code = write_json(job);
    lns_matches_close(&job->matches);
    for (int i = 0; i < 2; i++)
        lns_cli_found_free(&job->found[i]);
    lns_cli_detector_stop(&job->detector);
    lns_superpoint_close(&job->model);
    return code;
}

int lns_cli_match(int argc, char **argv) {
    matching job = {.ratio = 1, .min_similarity = -1};
    lns_cli_settings_init(&job.settings);
    lns_cli_option options[LNS_CLI_SETTINGS_OPTIONS + 7] = {
        {.kind = LNS_CLI_TEXT, .name = "output", .letter = 'o', .target = (void *)&job.output},
        {.kind = LNS_CLI_TEXT, .name = "draw", .letter = 'd', .target = (void *)&job.draw},
        {.kind = LNS_CLI_FLAG, .name = "descriptors", .target = &job.descriptors, .low = 1},
        {.kind = LNS_CLI_FLAG, .name = "no-descriptors", .target = &job.descriptors, .low = 0},
        {.kind = LNS_CLI_REAL, .name = "ratio", .target = &job.ratio, .low = 0, .high = 1, .open = true},
        {.kind = LNS_CLI_REAL, .name = "min-similarity", .target = &job.min_similarity, .low = -1, .high = 1},
    };
    lns_cli_settings_options(&job.settings, options + 6);
    int count;
    int code;
    if (!lns_cli_parse(argc, argv, options, lns_cli_match_help, &count, &code))
        return code;
    if (count != 2) {
        lns_cli_error("match: takes two images, but got %d; see `lensing help match`", count);
        return LNS_CLI_USAGE;
    }
    if (job.output != NULL && strcmp(job.output, "-") == 0)
        job.output = NULL;
    if (!lns_cli_check_environment())
        return LNS_CLI_USAGE;
    for (int i = 1; i <= 2; i++) {
        if (strcmp(argv[i], "-") != 0 && lns_cli_is_folder(argv[i])) {
            lns_cli_error("match: '%s' is a folder; A and B are images", argv[i]);
            return LNS_CLI_USAGE;
        }
    }
    code = lns_cli_inputs_expand(count, argv + 1, &job.inputs);
    if (code == LNS_CLI_OK)
        code = check(&job);
    if (code == LNS_CLI_OK)
        code = run(&job);
    lns_cli_inputs_free(&job.inputs);
    return code;
}
