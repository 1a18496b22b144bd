/* SPDX-License-Identifier: Apache-2.0 */
/* lensing detect: pictures in, keypoints and descriptors out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

const char lns_cli_detect_help[] = "Usage: lensing detect [OPTION]... IMAGE...\n"
                                   "\n"
                                   "Finds SuperPoint keypoints in images and writes them, with their scores and\n"
                                   "perhaps descriptors. IMAGE is a file (JPEG, PNG, WebP, TIFF, GIF, BMP or PNM),\n"
                                   "a folder (its image files, by name; folders in it are left out), or - for\n"
                                   "standard input. An image that cannot be read is reported and left out.\n"
                                   "\n"
                                   "Output:\n"
                                   "  -o, --output FILE|DIR|-     where to write; - is standard output  [-]\n"
                                   "                              DIR is a folder that exists or a name that ends\n"
                                   "                              with /; it gets one file for each image, such as\n"
                                   "                              photo.jpg.json\n"
                                   "  -f, --format FORMAT         json: one object a line for each image\n"
                                   "                              npz: NumPy arrays, one file for each image\n"
                                   "                              hdf5: one file for all images, as hloc reads it\n"
                                   "                              [by the ending of FILE, else json]\n"
                                   "  -d, --draw FILE|DIR         a PNG with the keypoints drawn; DIR for several\n"
                                   "                              images\n"
                                   "      --descriptors           put descriptors into JSON (base64 of an NPZ of\n"
                                   "                              float16); npz and hdf5 always hold them\n"
                                   "      --no-descriptors        leave them out of JSON  [the default]\n"
                                   "  -q, --quiet                 no progress bar\n"
                                   "\n"
                                   "What to find:\n"
                                   "  -n, --max-keypoints N       at most N per image, the highest scores; -1 (all)\n"
                                   "                              to 307200  [1024]\n"
                                   "      --keypoint-threshold T  scores above T only; 0 to 1  [0.005]\n"
                                   "      --nms-radius R          only the highest score within R pixels, in the\n"
                                   "                              640 x 480 frame of the network; 0 (off) to 32  [4]\n"
                                   "      --exif MODE             ignore: pixels as stored, like Pillow, COLMAP and\n"
                                   "                              hloc; apply: turn them upright  [ignore]\n"
                                   "      --max-pixels N          refuse larger images; 0: no limit  [178956970]\n"
                                   "\n"
                                   "Network:\n"
                                   "  -w, --weights W             a folder with config.json and model.safetensors, a\n"
                                   "                              .safetensors file, or a Hugging Face repository,\n"
                                   "                              perhaps with @revision  [those of the program,\n"
                                   "                              see `lensing help`]\n"
                                   "  -t, --threads N             threads of the network, 0 to 256; 0: one for each\n"
                                   "                              CPU  [0]. The results do not depend on it.\n"
                                   "      --precision P           arithmetic of the network: fp32, or bf16, which is\n"
                                   "                              faster and less exact, and needs AVX512_BF16\n"
                                   "                              [fp32]\n"
                                   "      --backend B             cpu, or blackhole: a Tenstorrent card, which has\n"
                                   "                              products of bfloat16 whatever --precision says\n"
                                   "                              [cpu]\n"
                                   "      --device-id N           the card /dev/tenstorrent/N  [TT_DEVICE_ID, or 0]\n"
                                   "  -h, --help                  this text\n"
                                   "\n"
                                   "Examples:\n"
                                   "  lensing detect photo.jpg\n"
                                   "  lensing detect photo.jpg --draw keypoints.png -o keypoints.json\n"
                                   "  lensing detect photos/ -o features.h5\n"
                                   "  lensing detect *.jpg --format npz -o features/\n"
                                   "  curl -s https://example.org/photo.jpg | lensing detect -\n"
                                   "\n"
                                   "Exit code: 0 all went well, 1 at least one image failed, 2 wrong usage,\n"
                                   "3 weights missing or wrong, 4 output could not be written, 5 other errors,\n"
                                   "130 interrupted. No unfinished file is left behind.\n";

typedef struct detection {
    lns_cli_settings settings;
    const char *output;
    const char *draw;
    int format;      /* -1: not given */
    int descriptors; /* -1: not given */
    bool draw_folder;
    bool made_draw_folder;
    lns_cli_inputs inputs;
    lns_image_options image;
    lns_detect_options detect;
    lns_cli_sink sink;
    lns_cli_detector *detector;
    lns_superpoint *model;
} detection;

static bool ends_with(const char *text, const char *ending) {
    const size_t size = strlen(text);
    const size_t ending_size = strlen(ending);
    return size > ending_size && strcmp(text + size - ending_size, ending) == 0;
}

/* A folder, or with several pictures a new name that does not look like that of a file. */
static bool means_folder(const char *path, size_t count) {
    if (lns_cli_is_folder(path))
        return true;
    const char *slash = strrchr(path, '/');
    return count > 1 && access(path, F_OK) != 0 && strchr(slash != NULL ? slash + 1 : path, '.') == NULL;
}

static int choose_format(detection *job) {
    lns_cli_sink *sink = &job->sink;
    if (job->output != NULL && strcmp(job->output, "-") != 0)
        sink->path = job->output;
    if (job->format >= 0)
        sink->format = (lns_cli_format)job->format;
    else if (sink->path != NULL && ends_with(sink->path, ".npz"))
        sink->format = LNS_CLI_NPZ;
    else if (sink->path != NULL && (ends_with(sink->path, ".h5") || ends_with(sink->path, ".hdf5")))
        sink->format = LNS_CLI_HDF5;
    if (sink->format != LNS_CLI_JSON && job->descriptors == 0) {
        lns_cli_error("--no-descriptors goes with --format json only; npz and hdf5 always hold descriptors");
        return LNS_CLI_USAGE;
    }
    sink->descriptors = job->descriptors == 1;
    return LNS_CLI_OK;
}

static int check_hdf5(const detection *job) {
    if (job->sink.path == NULL) {
        lns_cli_error("hdf5 cannot go to standard output; name a file with -o FILE");
        return LNS_CLI_USAGE;
    }
    if (job->sink.folder || lns_cli_is_special(job->sink.path)) {
        lns_cli_error("-o %s: hdf5 is one regular file for all images", job->sink.path);
        return LNS_CLI_USAGE;
    }
    const lns_cli_input *repeated = lns_cli_inputs_repeated(&job->inputs);
    if (repeated != NULL) {
        lns_cli_error("%s: the image is given twice; names in an HDF5 file must differ", repeated->member);
        return LNS_CLI_USAGE;
    }
    return LNS_CLI_OK;
}

static int check_npz(const detection *job) {
    if (job->inputs.count > 1 && !job->sink.folder) {
        lns_cli_error("npz holds one image, but there are %zu; name a folder, such as -o features/", job->inputs.count);
        return LNS_CLI_USAGE;
    }
    if (job->sink.path == NULL && isatty(STDOUT_FILENO) == 1) {
        lns_cli_error("npz is not for a terminal; name a file with -o FILE");
        return LNS_CLI_USAGE;
    }
    return LNS_CLI_OK;
}

static int check_overwriting(const detection *job) {
    const char *outputs[] = {job->sink.folder ? NULL : job->sink.path, job->draw_folder ? NULL : job->draw};
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; outputs[i] != NULL && j < job->inputs.count; j++) {
            if (!lns_cli_is_special(outputs[i]) && lns_cli_same_file(outputs[i], job->inputs.items[j].path)) {
                lns_cli_error("%s %s: would replace an image that is to be read", i == 0 ? "-o" : "--draw", outputs[i]);
                return LNS_CLI_USAGE;
            }
        }
    }
    if (outputs[0] != NULL && outputs[1] != NULL && strcmp(outputs[0], outputs[1]) == 0 &&
        !lns_cli_is_special(outputs[0])) {
        lns_cli_error("-o and --draw name the same file, '%s'", outputs[0]);
        return LNS_CLI_USAGE;
    }
    return LNS_CLI_OK;
}

/* Refuses what cannot work before anything is opened. */
static int check_outputs(detection *job) {
    const size_t count = job->inputs.count;
    lns_cli_sink *sink = &job->sink;
    sink->folder = sink->path != NULL &&
                   (sink->format == LNS_CLI_NPZ ? means_folder(sink->path, count) : lns_cli_is_folder(sink->path));
    int code = LNS_CLI_OK;
    if (sink->format == LNS_CLI_HDF5)
        code = check_hdf5(job);
    else if (sink->format == LNS_CLI_NPZ)
        code = check_npz(job);
    if (code != LNS_CLI_OK)
        return code;
    if (job->draw != NULL) {
        job->draw_folder = means_folder(job->draw, count);
        if (count > 1 && !job->draw_folder) {
            lns_cli_error("--draw %s: there are %zu images; name a folder, such as --draw drawn/", job->draw, count);
            return LNS_CLI_USAGE;
        }
    }
    return check_overwriting(job);
}

static int save_drawing(const detection *job, const lns_cli_input *input, const lns_cli_found *found) {
    if (found->drawing == NULL) {
        lns_cli_report_message("--draw", found->message);
        return lns_cli_exit_code(found->draw_status);
    }
    char *path = lns_cli_output_path(job->draw, job->draw_folder, input, ".png");
    if (path == NULL)
        return LNS_CLI_OTHER;
    const int code = lns_cli_file_save(path, found->drawing, found->drawing_size);
    free(path);
    return code;
}

static int write_found(detection *job, const lns_cli_input *input, const lns_cli_found *found) {
    if (found->features == NULL) {
        lns_cli_report_message(lns_cli_input_title(input->path), found->message);
        return LNS_CLI_IMAGE;
    }
    int code = LNS_CLI_OK;
    if (job->draw != NULL)
        code = save_drawing(job, input, found);
    if (code == LNS_CLI_OK)
        code = lns_cli_sink_put(&job->sink, input, found->features);
    return code;
}

static int write_all_found(detection *job) {
    const bool on_screen = job->sink.path == NULL && isatty(STDOUT_FILENO) == 1;
    const size_t count = job->inputs.count;
    lns_cli_progress progress;
    lns_cli_found found;
    lns_cli_progress_start(&progress, "detect", false, count > 1 && !job->settings.quiet && !on_screen);
    int result = LNS_CLI_OK;
    size_t done = 0;
    lns_cli_progress_update(&progress, 0, count);
    while (lns_cli_detector_next(job->detector, &found)) {
        const int code = write_found(job, &job->inputs.items[done++], &found);
        lns_cli_found_free(&found);
        if (code != LNS_CLI_OK)
            result = code;
        if (code > LNS_CLI_IMAGE)
            break;
        lns_cli_progress_update(&progress, done, count);
    }
    lns_cli_progress_stop(&progress);
    return lns_cli_interrupted() ? LNS_CLI_INTERRUPTED : result;
}

/* The model is open by now: nothing is written for want of weights. */
static int write_results(detection *job) {
    int code = LNS_CLI_OK;
    if (job->draw_folder)
        code = lns_cli_make_folder(job->draw, &job->made_draw_folder);
    if (code == LNS_CLI_OK)
        code = lns_cli_sink_open(&job->sink);
    if (code != LNS_CLI_OK)
        return code;
    code = write_all_found(job);
    if (code > LNS_CLI_IMAGE) {
        lns_cli_sink_abandon(&job->sink);
        return code;
    }
    const int finished = lns_cli_sink_finish(&job->sink);
    return finished != LNS_CLI_OK ? finished : code;
}

static int run(detection *job) {
    lns_cli_settings_image(&job->settings, &job->image);
    lns_cli_settings_detect(&job->settings, &job->detect);
    job->detect.return_descriptors = job->sink.format != LNS_CLI_JSON || job->sink.descriptors;
    const lns_cli_detector_options options = {.inputs = &job->inputs,
                                              .image = &job->image,
                                              .detect = &job->detect,
                                              .threads = job->settings.model.threads,
                                              .draw = job->draw != NULL};
    /* The first pictures are decoded while the weights are read. */
    int code = lns_cli_detector_start(&options, &job->detector);
    if (code == LNS_CLI_OK)
        code = lns_cli_open_model(&job->settings.model, &job->model);
    if (code == LNS_CLI_OK) {
        lns_cli_detector_use(job->detector, job->model);
        code = write_results(job);
    }
    lns_cli_detector_stop(&job->detector);
    lns_superpoint_close(&job->model);
    if (job->made_draw_folder)
        rmdir(job->draw); /* only succeeds when nothing was drawn */
    return code;
}

static int detect_in(detection *job, int count, char *const *arguments) {
    if (count == 0) {
        lns_cli_error("detect: no IMAGE given; see `lensing help detect`");
        return LNS_CLI_USAGE;
    }
    int code = choose_format(job);
    if (code == LNS_CLI_OK && !lns_cli_check_environment())
        code = LNS_CLI_USAGE;
    if (code == LNS_CLI_OK)
        code = lns_cli_inputs_expand(count, arguments, &job->inputs);
    if (code == LNS_CLI_OK && job->inputs.count > 0)
        code = check_outputs(job);
    if (code == LNS_CLI_OK && job->inputs.count > 0)
        code = run(job);
    if (code == LNS_CLI_OK)
        code = job->inputs.code;
    lns_cli_inputs_free(&job->inputs);
    return code;
}

int lns_cli_detect(int argc, char **argv) {
    detection job = {.format = -1, .descriptors = -1};
    lns_cli_settings_init(&job.settings);
    lns_cli_option options[LNS_CLI_SETTINGS_OPTIONS + 6] = {
        {.kind = LNS_CLI_TEXT, .name = "output", .letter = 'o', .target = (void *)&job.output},
        {.kind = LNS_CLI_CHOICE, .name = "format", .letter = 'f', .target = &job.format, .choices = "json npz hdf5"},
        {.kind = LNS_CLI_TEXT, .name = "draw", .letter = 'd', .target = (void *)&job.draw},
        {.kind = LNS_CLI_FLAG, .name = "descriptors", .target = &job.descriptors, .low = 1},
        {.kind = LNS_CLI_FLAG, .name = "no-descriptors", .target = &job.descriptors, .low = 0},
    };
    lns_cli_settings_options(&job.settings, options + 5);
    int count;
    int code;
    if (!lns_cli_parse(argc, argv, options, lns_cli_detect_help, &count, &code))
        return code;
    return detect_in(&job, count, argv + 1);
}
