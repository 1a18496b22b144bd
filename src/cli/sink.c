/* SPDX-License-Identifier: Apache-2.0 */
/* Where the results of detect go: standard output, one file, or a folder of files. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const char *const format_endings[] = {".json", ".npz", ".h5"};

char *lns_cli_output_path(const char *path, bool folder, const lns_cli_input *input, const char *ending) {
    char *joined = NULL;
    const size_t size = strlen(path);
    const char *between = size > 0 && path[size - 1] == '/' ? "" : "/";
    const int length =
        folder ? asprintf(&joined, "%s%s%s%s", path, between, input->name, ending) : asprintf(&joined, "%s", path);
    if (length >= 0)
        return joined;
    lns_cli_error("out of memory");
    return NULL;
}

static int failed(lns_status status, const char *subject) {
    lns_cli_report(subject);
    return lns_cli_exit_code(status);
}

int lns_cli_sink_open(lns_cli_sink *sink) {
    sink->file = (lns_cli_file){.fd = -1};
    if (sink->path == NULL)
        return LNS_CLI_OK;
    if (sink->folder)
        return lns_cli_make_folder(sink->path, &sink->made_folder);
    if (sink->format == LNS_CLI_JSON)
        return lns_cli_file_open(&sink->file, sink->path);
    if (sink->format == LNS_CLI_HDF5) {
        const lns_status status = lns_hdf5_create(sink->path, &sink->hdf5);
        return status == LNS_OK ? LNS_CLI_OK : failed(status, NULL);
    }
    return LNS_CLI_OK;
}

/* A whole file of its own, or a piece of standard output. */
static int save(const lns_cli_sink *sink, const lns_cli_input *input, const void *bytes, size_t size) {
    if (sink->path == NULL)
        return lns_cli_write_stdout(bytes, size);
    char *path = lns_cli_output_path(sink->path, sink->folder, input, format_endings[sink->format]);
    if (path == NULL)
        return LNS_CLI_OTHER;
    const int code = lns_cli_file_save(path, bytes, size);
    free(path);
    return code;
}

static int put_json(lns_cli_sink *sink, const lns_cli_input *input, const lns_features *features) {
    lns_json_options options;
    lns_json_options_init(&options);
    options.file = input->path;
    options.descriptors = sink->descriptors;
    options.weights = 1;
    char *text = NULL;
    size_t size = 0;
    const lns_status status = lns_features_to_json(features, &options, &text, &size);
    if (status != LNS_OK)
        return failed(status, input->path);
    int code;
    text[size] = '\n'; /* in place of the NUL */
    if (sink->path != NULL && !sink->folder)
        code = lns_cli_file_write(&sink->file, text, size + 1);
    else
        code = save(sink, input, text, size + 1);
    lns_buffer_free(text);
    return code;
}

static int put_npz(const lns_cli_sink *sink, const lns_cli_input *input, const lns_features *features) {
    void *bytes = NULL;
    size_t size = 0;
    const lns_status status = lns_features_to_npz(features, &bytes, &size);
    if (status != LNS_OK)
        return failed(status, input->path);
    const int code = save(sink, input, bytes, size);
    lns_buffer_free(bytes);
    return code;
}

int lns_cli_sink_put(lns_cli_sink *sink, const lns_cli_input *input, const lns_features *features) {
    int code;
    if (sink->format == LNS_CLI_JSON) {
        code = put_json(sink, input, features);
    } else if (sink->format == LNS_CLI_NPZ) {
        code = put_npz(sink, input, features);
    } else {
        const lns_status status = lns_hdf5_add(sink->hdf5, input->member, features);
        code = status == LNS_OK ? LNS_CLI_OK : failed(status, input->path);
        /* Such as a name that HDF5 cannot hold: a matter of this picture. */
        if (status == LNS_ERROR_INVALID_ARGUMENT)
            return LNS_CLI_IMAGE;
    }
    if (code == LNS_CLI_OK)
        sink->written++;
    else
        lns_cli_sink_abandon(sink);
    return code;
}

int lns_cli_sink_finish(lns_cli_sink *sink) {
    if (sink->written == 0) {
        lns_cli_sink_abandon(sink);
        return LNS_CLI_OK;
    }
    if (sink->file.path != NULL)
        return lns_cli_file_finish(&sink->file);
    if (sink->hdf5 != NULL) {
        const lns_status status = lns_hdf5_close(&sink->hdf5);
        return status == LNS_OK ? LNS_CLI_OK : failed(status, NULL);
    }
    return LNS_CLI_OK;
}

void lns_cli_sink_abandon(lns_cli_sink *sink) {
    lns_cli_file_abandon(&sink->file);
    lns_hdf5_abandon(&sink->hdf5);
    if (sink->made_folder && sink->written == 0)
        rmdir(sink->path);
    sink->made_folder = false;
}
