/* SPDX-License-Identifier: Apache-2.0 */
/* GET /health, /ready, /v1/models and /info. Keys, their order and types are those of the server before this one; values
 * say what really runs. */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "json_reader.h"

static const char json[] = "application/json";

/* A JSON string, or null. */
static void add_string(FILE *out, const char *text) {
    if (text == NULL) {
        fputs("null", out);
        return;
    }
    text_buffer quoted = {0};
    json_write_string(&quoted, text, strlen(text));
    if (!quoted.failed)
        fwrite(quoted.data, 1, quoted.size, out);
    text_buffer_free(&quoted);
}

/* An answer that is written with stdio. */
typedef struct answer_stream {
    FILE *out;
    char *text;
    size_t size;
} answer_stream;

/* NULL: no memory, which was answered. */
static FILE *open_answer(request *r, answer_stream *stream) {
    *stream = (answer_stream){0};
    stream->out = open_memstream(&stream->text, &stream->size);
    if (stream->out == NULL)
        request_answer(r, 500, json, NULL, 0);
    return stream->out;
}

static void send_answer(request *r, answer_stream *stream) {
    if (fclose(stream->out) != 0) {
        free(stream->text);
        stream->text = NULL;
    }
    request_answer(r, 200, json, stream->text, stream->size);
}

static const char *architecture(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

void info_health(request *r) {
    answer_stream stream;
    FILE *out = open_answer(r, &stream);
    if (out == NULL)
        return;
    const int is_warm = server_model(r->server) != NULL;
    fprintf(out, "{\"status\":\"%s\",\"model\":\"superpoint-p150\",\"device\":{\"arch\":", is_warm ? "ok" : "starting");
    add_string(out, architecture());
    fprintf(out, ",\"id\":%d,\"open\":%s}}", server_surroundings(r->server)->device_id, is_warm ? "true" : "false");
    send_answer(r, &stream);
}

void info_ready(request *r) {
    if (server_is_draining(r->server))
        request_answer_detail(r, 503, "the server is shutting down");
    else if (server_model(r->server) == NULL)
        request_answer_detail(r, 503, "the server is starting");
    else
        request_answer_text(r, 200, json, "{\"status\":\"ready\"}");
}

/* What HF_MODEL says, or the weights that were named on the command line. */
static const char *repository(const request *r) {
    const char *given = server_settings(r->server)->weights;
    return given != NULL ? given : server_surroundings(r->server)->repository;
}

void info_models(request *r) {
    answer_stream stream;
    FILE *out = open_answer(r, &stream);
    if (out == NULL)
        return;
    fputs("{\"object\":\"list\",\"data\":[{\"id\":", out);
    add_string(out, repository(r));
    fputs(",\"object\":\"model\",\"owned_by\":\"changh95\"}]}", out);
    send_answer(r, &stream);
}

static void add_weights(FILE *out, const request *r) {
    const server_environment *e = server_surroundings(r->server);
    fputs(",\"weights\":{\"repo\":", out);
    add_string(out, repository(r));
    fputs(",\"revision\":", out);
    add_string(out, e->revision);
    fputs(",\"local_dir\":", out);
    add_string(out, e->local_dir);
    fputs(",\"loaded\":true},\"source\":{\"repo\":\"https://github.com/changh95/tt-superpoint\","
          "\"commit\":\"e1eab66e29ff424bc9af6b1118671d9bc08e899e\"}",
          out);
}

static void add_serving_path(FILE *out, const lns_superpoint_info *info) {
    fprintf(out,
            ",\"serving_path\":{\"traced\":false,\"device_nms\":false,\"custom_kernel\":true,\"compute_grid\":\"%dx1\","
            "\"device_keypoints\":false,\"device_resize\":false,\"host_zero_copy_io\":false,\"device_softmax\":false,"
            "\"device_descriptor_l2norm\":false,\"fused\":true,\"fused_stages\":[],\"nms_radius_traced\":null,"
            "\"device_nms_radii\":\"none: suppression runs on the CPU for every radius\",\"wide_page_upload\":false,"
            "\"rms_norm_l2\":false,\"row_major_outputs\":true,\"trace_region_size\":0,"
            "\"note\":\"Lensing %s on the CPU: %s kernels, %s, %d threads; there is no device beside the CPU\"}",
            info->threads, lns_version(), info->cpu_path, info->precision, info->threads);
}

void info_info(request *r) {
    lns_superpoint_info info;
    if (server_model(r->server) == NULL) {
        request_answer_detail(r, 503, "the server is starting");
        return;
    }
    if (lns_superpoint_describe(server_model(r->server), &info, sizeof info) != LNS_OK) {
        request_answer_detail(r, 500, lns_error_message());
        return;
    }
    answer_stream stream;
    FILE *out = open_answer(r, &stream);
    if (out == NULL)
        return;
    fputs("{\"model\":\"superpoint-p150\",\"task\":\"keypoint-detection\",\"io\":\"one image (base64 PNG/JPEG, or its "
          "bytes, or its R plane) -> keypoints [x, y] in original pixel coordinates, scores, optional 256-d "
          "descriptors\",\"hardware\":",
          out);
    fprintf(out, "\"CPU (%s), %d threads, %s kernels\"", architecture(), info.threads, info.cpu_path);
    add_weights(out, r);
    fprintf(out, ",\"device_config\":{\"dispatch\":\"cpu-%s\",\"num_command_queues\":1,\"compute_grid\":\"%dx1\"}",
            info.cpu_path, info.threads);
    fputs(",\"input\":{\"canonical_height\":480,\"canonical_width\":640,\"batch\":1,\"preprocess\":\"bilinear resize to "
          "640x480, /255, channel 0 (R) -- HF SuperPointImageProcessor defaults\"}",
          out);
    fprintf(out,
            ",\"defaults\":{\"max_keypoints\":1024,\"keypoint_threshold\":0.005,\"nms_radius\":4,"
            "\"border_removal_distance\":%d,\"return_descriptors\":true},"
            "\"limits\":{\"max_keypoints\":%d,\"nms_radius\":%d,\"images_per_request\":1}",
            (int)info.border_removal_distance, LNS_MAX_KEYPOINTS_LIMIT, LNS_NMS_RADIUS_LIMIT);
    add_serving_path(out, &info);
    /* There is no second pass: the first leaves nothing cold. */
    fprintf(out, ",\"warmup_ms\":{\"load\":%.1f,\"first_forward\":%.1f,\"second_forward\":0.0}",
            server_load_ms(r->server), server_warmup_ms(r->server));
    fputs(",\"descriptors\":{\"dim\":256,\"encoding\":\"npz(base64) key 'descriptors' float16 (N, 256), "
          "L2-normalised\"},\"license\":",
          out);
    char license[512];
    snprintf(license, sizeof license, "Weights: %s. Lensing itself: Apache-2.0.", info.license);
    add_string(out, license);
    fputc('}', out);
    send_answer(r, &stream);
}
