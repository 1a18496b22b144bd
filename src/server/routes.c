/* SPDX-License-Identifier: Apache-2.0 */
/* Which path is answered by what. */
#include "info.h"
#include "pages.h"
#include "predict.h"
#include "request.h"

static void answer_metrics(request *r) {
    size_t size = 0;
    char *text = metrics_text(server_metrics(r->server), server_queue_length(r->server), server_connections(r->server),
                              &size);
    request_answer(r, 200, "text/plain; version=0.0.4; charset=utf-8", text, size);
}

static void answer_openapi(request *r) {
    request_answer_text(r, 200, "application/json", page_openapi);
}

static void answer_docs(request *r) {
    request_answer_text(r, 200, "text/html; charset=utf-8", page_docs);
}

static void answer_index(request *r) {
    request_answer_text(r, 200, "text/html; charset=utf-8", page_index);
}

static void answer_script(request *r) {
    request_answer_text(r, 200, "text/javascript; charset=utf-8", page_script);
}

static void answer_style(request *r) {
    request_answer_text(r, 200, "text/css; charset=utf-8", page_style);
}

const route server_routes[] = {
    {"/health", "GET", info_health, NULL, 1},
    {"/v1/health", "GET", info_health, NULL, 1},
    {"/ready", "GET", info_ready, NULL, 1},
    {"/info", "GET", info_info, NULL, 0},
    {"/v1/models", "GET", info_models, NULL, 0},
    {"/predict", "POST", predict_json, NULL, 0},
    {"/predict_raw", "POST", predict_raw, NULL, 0},
    {"/predict_plane", "POST", predict_plane, predict_plane_before_body, 0},
    {"/metrics", "GET", answer_metrics, NULL, 0},
    /* Open, as a browser that follows a link brings no key; they tell nothing about this server. */
    {"/", "GET", answer_index, NULL, 1},
    {"/page.js", "GET", answer_script, NULL, 1},
    {"/style.css", "GET", answer_style, NULL, 1},
    {"/docs", "GET", answer_docs, NULL, 1},
    {"/openapi.json", "GET", answer_openapi, NULL, 1},
    {0},
};
