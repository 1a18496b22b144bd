/* SPDX-License-Identifier: Apache-2.0 */
/* GET /health, /ready, /v1/models and /info. Keys, their order and types are those of the server before this one; values
 * say what really runs. */
#include "info.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "json_reader.h"

static const char json[] = "application/json";

/* A JSON string, or null. */
static void add_string(text_buffer *out, const char *text) {
    if (text == NULL)
        text_buffer_add_text(out, "null");
    else
        json_write_string(out, text, strlen(text));
}

static void send_answer(request *r, text_buffer *out) {
    if (out->failed)
        text_buffer_free(out);
    request_answer(r, 200, json, out->data, out->size);
}

static const char *processor(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

static int is_simulated(const lns_superpoint_info *info) {
    return strcmp(info->device, "simulator") == 0;
}

/* What the network runs on, or will once the model is open. */
static const char *architecture(const request *r, const lns_superpoint_info *info) {
    if (!server_uses_card(r->server))
        return processor();
    return is_simulated(info) ? "blackhole simulator" : "blackhole";
}

/* Facts about the model; before it is warm, those of a device without a name. */
static void describe(const request *r, lns_superpoint_info *info) {
    const lns_superpoint *model = server_model(r->server);
    if (model == NULL || lns_superpoint_describe(model, info, sizeof *info) != LNS_OK)
        *info = (lns_superpoint_info){.device = ""};
}

void info_health(request *r) {
    text_buffer out = {0};
    lns_superpoint_info info;
    const int is_warm = server_model(r->server) != NULL;
    describe(r, &info);
    text_buffer_format(
        &out, "{\"status\":\"%s\",\"model\":\"superpoint-p150\",\"device\":{\"arch\":", is_warm ? "ok" : "starting");
    add_string(&out, architecture(r, &info));
    text_buffer_format(&out, ",\"id\":%d,\"open\":%s}}", server_device_id(r->server),
                       is_warm && !info.has_failed ? "true" : "false");
    send_answer(r, &out);
}

void info_ready(request *r) {
    lns_superpoint_info info;
    describe(r, &info);
    if (server_is_draining(r->server))
        request_answer_detail(r, 503, "the server is shutting down");
    else if (server_model(r->server) == NULL)
        request_answer_detail(r, 503, "the server is starting");
    else if (info.has_failed)
        request_answer_detail(r, 503, "the card has failed; start the server again");
    else
        request_answer_text(r, 200, json, "{\"status\":\"ready\"}");
}

/* What HF_MODEL says, or the weights that were named on the command line. */
static const char *repository(const request *r) {
    const char *given = server_settings(r->server)->weights;
    return given != NULL ? given : server_surroundings(r->server)->repository;
}

void info_models(request *r) {
    text_buffer out = {0};
    text_buffer_add_text(&out, "{\"object\":\"list\",\"data\":[{\"id\":");
    add_string(&out, repository(r));
    text_buffer_add_text(&out, ",\"object\":\"model\",\"owned_by\":\"changh95\"}]}");
    send_answer(r, &out);
}

static void add_weights(text_buffer *out, const request *r, const lns_superpoint_info *info) {
    const server_environment *e = server_surroundings(r->server);
    /* What the environment says counts only as far as it decided. */
    const int is_named = server_settings(r->server)->weights != NULL;
    text_buffer_add_text(out, ",\"weights\":{\"repo\":");
    add_string(out, repository(r));
    text_buffer_add_text(out, ",\"revision\":");
    add_string(out, is_named || info->file == NULL ? info->revision : e->revision);
    text_buffer_add_text(out, ",\"local_dir\":");
    add_string(out, is_named ? info->local_dir : e->local_dir);
    text_buffer_add_text(out, ",\"loaded\":true},\"source\":{\"repo\":\"https://github.com/changh95/tt-superpoint\","
                              "\"commit\":\"e1eab66e29ff424bc9af6b1118671d9bc08e899e\"}");
}

static void add_hardware(text_buffer *out, const request *r, const lns_superpoint_info *info) {
    if (server_uses_card(r->server) && is_simulated(info))
        text_buffer_add_text(out, "\"Tenstorrent Blackhole, simulated: there is no card\"");
    else if (server_uses_card(r->server))
        text_buffer_format(out, "\"Tenstorrent Blackhole %s, single chip (mesh 1x1)\"", info->device);
    else
        text_buffer_format(out, "\"CPU (%s), %d threads, %s kernels\"", processor(), info->threads, info->cpu_path);
}

static void add_device_config(text_buffer *out, const request *r, const lns_superpoint_info *info) {
    if (server_uses_card(r->server))
        text_buffer_add_text(out, ",\"device_config\":{\"dispatch\":\"resident\",\"num_command_queues\":1,"
                                  "\"compute_grid\":\"" SERVER_CARD_GRID "\"}");
    else
        text_buffer_format(
            out, ",\"device_config\":{\"dispatch\":\"cpu-%s\",\"num_command_queues\":1,\"compute_grid\":\"%dx1\"}",
            info->cpu_path, info->threads);
}

static void add_card_path(text_buffer *out, const lns_superpoint_info *info) {
    text_buffer_format(
        out,
        ",\"serving_path\":{\"traced\":false,\"device_nms\":true,\"custom_kernel\":true,"
        "\"compute_grid\":\"" SERVER_CARD_GRID "\",\"device_keypoints\":true,\"device_resize\":false,"
        "\"host_zero_copy_io\":false,\"device_softmax\":true,\"device_descriptor_l2norm\":false,\"fused\":true,"
        "\"fused_stages\":[],\"nms_radius_traced\":null,\"device_nms_radii\":\"1 to 8 on the card; 0 and 9 to 32 on "
        "the CPU\",\"wide_page_upload\":false,\"rms_norm_l2\":false,\"row_major_outputs\":true,"
        "\"trace_region_size\":0,\"note\":\"Lensing %s on %s: one resident program on 120 tiles, products of bfloat16, "
        "sums in float32; resizing and the order of keypoints are the CPU's\"}",
        lns_version(), is_simulated(info) ? "a simulated Blackhole card" : info->device);
}

static void add_cpu_path(text_buffer *out, const lns_superpoint_info *info) {
    text_buffer_format(
        out,
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
    text_buffer out = {0};
    text_buffer_add_text(
        &out,
        "{\"model\":\"superpoint-p150\",\"task\":\"keypoint-detection\",\"io\":\"one image (base64 PNG/JPEG, or its "
        "bytes, or its R plane) -> keypoints [x, y] in original pixel coordinates, scores, optional 256-d "
        "descriptors\",\"hardware\":");
    add_hardware(&out, r, &info);
    add_weights(&out, r, &info);
    add_device_config(&out, r, &info);
    text_buffer_add_text(
        &out,
        ",\"input\":{\"canonical_height\":480,\"canonical_width\":640,\"batch\":1,\"preprocess\":\"bilinear resize to "
        "640x480, /255, channel 0 (R) -- HF SuperPointImageProcessor defaults\"}");
    text_buffer_format(&out,
                       ",\"defaults\":{\"max_keypoints\":1024,\"keypoint_threshold\":0.005,\"nms_radius\":4,"
                       "\"border_removal_distance\":%d,\"return_descriptors\":true},"
                       "\"limits\":{\"max_keypoints\":%d,\"nms_radius\":%d,\"images_per_request\":1}",
                       (int)info.border_removal_distance, LNS_MAX_KEYPOINTS_LIMIT, LNS_NMS_RADIUS_LIMIT);
    if (server_uses_card(r->server))
        add_card_path(&out, &info);
    else
        add_cpu_path(&out, &info);
    /* There is no second pass: the first leaves nothing cold. */
    text_buffer_format(&out, ",\"warmup_ms\":{\"load\":%.1f,\"first_forward\":%.1f,\"second_forward\":0.0}",
                       server_load_ms(r->server), server_warmup_ms(r->server));
    text_buffer_add_text(&out,
                         ",\"descriptors\":{\"dim\":256,\"encoding\":\"npz(base64) key 'descriptors' float16 (N, 256), "
                         "L2-normalised\"},\"license\":");
    char license[512];
    snprintf(license, sizeof license, "Weights: %s. Lensing itself: Apache-2.0.", info.license);
    add_string(&out, license);
    text_buffer_add_text(&out, "}");
    send_answer(r, &out);
}
