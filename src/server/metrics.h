/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in Prometheus' text format. All functions may be called by any thread. */
#ifndef LENSING_SERVER_METRICS_H
#define LENSING_SERVER_METRICS_H

#include <stddef.h>

#include <lensing/features.h>

typedef struct metrics metrics;

metrics *metrics_create(void);
void metrics_destroy(metrics *self);

/* A request was answered. `route`: as in the table of routes, or "other". */
void metrics_request(metrics *self, const char *route, int status, double milliseconds, size_t received, size_t sent);
/* A picture went through; `encode_ms`: writing the answer. */
void metrics_detection(metrics *self, const lns_timing *timing, double encode_ms, size_t keypoints);
/* A job waited for a thread. */
void metrics_waited(metrics *self, double milliseconds);
/* A job was dropped because its client had gone, or refused because it had waited too long or the queue was full. */
void metrics_abandoned(metrics *self);
void metrics_late(metrics *self);
void metrics_refused(metrics *self);

/* The whole text, malloc'ed; NULL when memory is missing. The gauges are given by the caller. */
char *metrics_text(metrics *self, size_t queue_length, size_t connections, size_t *size);

#endif
