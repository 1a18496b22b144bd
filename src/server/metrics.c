/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/version.h>

#include "buffer.h"

enum { BUCKETS = 14, SERIES_LIMIT = 64, STAGES = 6 };

/* Upper ends in seconds, as Prometheus wants them. */
static const double bounds[BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

typedef struct histogram {
    uint64_t counts[BUCKETS + 1];
    double sum;
} histogram;

typedef struct series { /* requests of one route and status */
    const char *route;
    int status;
    uint64_t count;
} series;

enum { WAIT, PREPROCESS, FORWARD, POSTPROCESS, ENCODE, TOTAL };
static const char *const stage_names[STAGES] = {"queue", "preprocess", "forward", "postprocess", "encode", "total"};

struct metrics {
    pthread_mutex_t lock;
    series requests[SERIES_LIMIT];
    size_t requests_count;
    histogram stages[STAGES];
    uint64_t keypoints, received, sent, abandoned, late, refused;
};

metrics *metrics_create(void) {
    metrics *self = calloc(1, sizeof *self);
    if (self != NULL)
        pthread_mutex_init(&self->lock, NULL);
    return self;
}

void metrics_destroy(metrics *self) {
    if (self != NULL)
        pthread_mutex_destroy(&self->lock);
    free(self);
}

static void observe(histogram *h, double milliseconds) {
    const double seconds = milliseconds * 1e-3;
    int i = 0;
    while (i < BUCKETS && seconds > bounds[i])
        i++;
    h->counts[i]++;
    h->sum += seconds;
}

void metrics_request(metrics *self, const char *route, int status, double milliseconds, size_t received, size_t sent) {
    pthread_mutex_lock(&self->lock);
    size_t i = 0;
    while (i < self->requests_count &&
           (self->requests[i].status != status || strcmp(self->requests[i].route, route) != 0))
        i++;
    if (i == self->requests_count && i < SERIES_LIMIT)
        self->requests[self->requests_count++] = (series){route, status, 0};
    if (i < self->requests_count)
        self->requests[i].count++;
    observe(&self->stages[TOTAL], milliseconds);
    self->received += received;
    self->sent += sent;
    pthread_mutex_unlock(&self->lock);
}

void metrics_detection(metrics *self, const lns_timing *timing, double encode_ms, size_t keypoints) {
    pthread_mutex_lock(&self->lock);
    observe(&self->stages[PREPROCESS], timing->preprocess);
    observe(&self->stages[FORWARD], timing->forward);
    observe(&self->stages[POSTPROCESS], timing->postprocess);
    observe(&self->stages[ENCODE], encode_ms);
    self->keypoints += keypoints;
    pthread_mutex_unlock(&self->lock);
}

void metrics_waited(metrics *self, double milliseconds) {
    pthread_mutex_lock(&self->lock);
    observe(&self->stages[WAIT], milliseconds);
    pthread_mutex_unlock(&self->lock);
}

static void count(metrics *self, uint64_t *counter) {
    pthread_mutex_lock(&self->lock);
    ++*counter;
    pthread_mutex_unlock(&self->lock);
}

void metrics_abandoned(metrics *self) {
    count(self, &self->abandoned);
}

void metrics_late(metrics *self) {
    count(self, &self->late);
}

void metrics_refused(metrics *self) {
    count(self, &self->refused);
}

/* ---- Text --------------------------------------------------------------------------------------- */

static void describe(text_buffer *out, const char *name, const char *type, const char *help) {
    text_buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_counter(text_buffer *out, const char *name, const char *help, uint64_t value) {
    describe(out, name, "counter", help);
    text_buffer_format(out, "%s %llu\n", name, (unsigned long long)value);
}

static void write_gauge(text_buffer *out, const char *name, const char *help, size_t value) {
    describe(out, name, "gauge", help);
    text_buffer_format(out, "%s %zu\n", name, value);
}

static void write_stages(text_buffer *out, const metrics *self) {
    static const char name[] = "lensing_stage_seconds";
    describe(out, name, "histogram", "Time of the stages of a request.");
    for (int s = 0; s < STAGES; s++) {
        uint64_t sum = 0;
        for (int i = 0; i < BUCKETS; i++) {
            sum += self->stages[s].counts[i];
            text_buffer_format(out, "%s_bucket{stage=\"%s\",le=\"%g\"} %llu\n", name, stage_names[s], bounds[i],
                               (unsigned long long)sum);
        }
        sum += self->stages[s].counts[BUCKETS];
        text_buffer_format(out, "%s_bucket{stage=\"%s\",le=\"+Inf\"} %llu\n", name, stage_names[s],
                           (unsigned long long)sum);
        text_buffer_format(out, "%s_sum{stage=\"%s\"} %.6f\n", name, stage_names[s], self->stages[s].sum);
        text_buffer_format(out, "%s_count{stage=\"%s\"} %llu\n", name, stage_names[s], (unsigned long long)sum);
    }
}

static void write_requests(text_buffer *out, const metrics *self) {
    describe(out, "lensing_requests_total", "counter", "Answered requests.");
    for (size_t i = 0; i < self->requests_count; i++)
        text_buffer_format(out, "lensing_requests_total{route=\"%s\",status=\"%d\"} %llu\n", self->requests[i].route,
                           self->requests[i].status, (unsigned long long)self->requests[i].count);
}

char *metrics_text(metrics *self, size_t queue_length, size_t connections, size_t *size) {
    text_buffer text = {0}, *out = &text;
    describe(out, "lensing_build_info", "gauge", "Version and kernels.");
    const char *path = lns_cpu_path();
    text_buffer_format(out, "lensing_build_info{version=\"%s\",cpu_path=\"%s\"} 1\n", lns_version(),
                       path != NULL ? path : "");
    write_gauge(out, "lensing_queue_length", "Requests that wait for the network or are in it.", queue_length);
    write_gauge(out, "lensing_connections", "Open connections.", connections);
    pthread_mutex_lock(&self->lock);
    write_requests(out, self);
    write_stages(out, self);
    write_counter(out, "lensing_keypoints_total", "Keypoints that were found.", self->keypoints);
    write_counter(out, "lensing_received_bytes_total", "Bytes of request bodies.", self->received);
    write_counter(out, "lensing_sent_bytes_total", "Bytes of answers.", self->sent);
    write_counter(out, "lensing_abandoned_total", "Requests whose client had gone before their turn.", self->abandoned);
    write_counter(out, "lensing_late_total", "Requests refused because they had waited too long.", self->late);
    write_counter(out, "lensing_refused_total", "Requests refused because the queue was full.", self->refused);
    pthread_mutex_unlock(&self->lock);
    if (text.failed)
        text_buffer_free(&text);
    *size = text.size;
    return text.data;
}
