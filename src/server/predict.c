/* SPDX-License-Identifier: Apache-2.0 */
#include "predict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"

static const char json[] = "application/json";

/* What a job refers to while it waits: the document holds the text of the image when it was written with escapes. */
typedef struct body_fields {
    json_document document;
    predict_fields fields;
} body_fields;

static void free_body_fields(void *pointer) {
    body_fields *fields = pointer;
    json_document_free(&fields->document);
    free(fields);
}

static void answer_errors(request *r, int status, text_buffer *error) {
    if (error->failed)
        text_buffer_free(error);
    request_answer(r, status, json, error->data, error->size);
}

static void set_options(job *work, const predict_fields *fields) {
    lns_detect_options_init(&work->options);
    work->options.max_keypoints = fields->max_keypoints;
    work->options.keypoint_threshold = fields->keypoint_threshold;
    work->options.nms_radius = fields->nms_radius;
    work->options.return_descriptors = fields->return_descriptors;
}

void predict_json(request *r) {
    body_fields *body = calloc(1, sizeof *body);
    if (body == NULL) {
        request_answer(r, 500, json, NULL, 0);
        return;
    }
    r->fields = body;
    r->free_fields = free_body_fields;
    text_buffer error = {0};
    const int status = fields_from_body(&body->document, (char *)r->body, r->size,
                                        content_type_is_json(request_header(r, "content-type")), &body->fields, &error);
    if (status != 0) {
        answer_errors(r, status, &error);
        return;
    }
    set_options(&r->work, &body->fields);
    r->work.input = JOB_BASE64;
    r->work.bytes = body->fields.image;
    r->work.size = body->fields.image_size;
    request_submit(r);
}

/* Reads the query; answers and returns 0 when it is wrong. */
static int read_query(request *r, bool is_plane, predict_fields *fields) {
    query_string query;
    text_buffer error = {0};
    int status = 500;
    if (query_read(&query, r->query, strlen(r->query)))
        status = fields_from_query(&query, is_plane, fields, &error);
    query_free(&query);
    if (status != 0)
        answer_errors(r, status, &error);
    return status == 0;
}

void predict_raw(request *r) {
    predict_fields fields = {0};
    if (!read_query(r, false, &fields))
        return;
    set_options(&r->work, &fields);
    r->work.input = JOB_ENCODED;
    r->work.bytes = r->body != NULL ? (void *)r->body : (void *)(size_t)"";
    r->work.size = r->size;
    request_submit(r);
}

static void answer_length(request *r, size_t got, size_t expected) {
    char text[128];
    snprintf(text, sizeof text, "bad plane: %zu bytes, expected height*width=%zu", got, expected);
    request_answer_detail(r, 400, text);
}

void predict_plane_before_body(request *r) {
    predict_fields fields = {0};
    if (!read_query(r, true, &fields))
        return;
    const size_t expected = (size_t)fields.height * (size_t)fields.width;
    if (r->has_length && r->content_length != expected)
        answer_length(r, r->content_length, expected);
}

void predict_plane(request *r) {
    predict_fields fields = {0};
    if (!read_query(r, true, &fields))
        return;
    const size_t expected = (size_t)fields.height * (size_t)fields.width;
    if (r->size != expected) {
        answer_length(r, r->size, expected);
        return;
    }
    set_options(&r->work, &fields);
    r->work.input = JOB_PLANE;
    r->work.bytes = r->body;
    r->work.size = r->size;
    r->work.width = (uint32_t)fields.width;
    r->work.height = (uint32_t)fields.height;
    request_submit(r);
}
