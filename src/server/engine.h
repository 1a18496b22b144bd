/* SPDX-License-Identifier: Apache-2.0 */
/* The work behind the requests: a bounded queue in front of a few threads that decode, detect and write answers.
 *
 * The network runs for a few requests at a time, in the order in which they came to it; meanwhile other threads decode
 * the next pictures and write the last answers. */
#ifndef LENSING_SERVER_ENGINE_H
#define LENSING_SERVER_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include <lensing/lensing.h>

#include "metrics.h"

typedef struct engine engine;

/* What a job works on. */
typedef enum job_input {
    JOB_ENCODED, /* the bytes of an image file */
    JOB_BASE64,  /* the same in base64; decoded where it stands */
    JOB_PLANE    /* an R plane, width x height bytes */
} job_input;

typedef struct job_result {
    int status;       /* HTTP status */
    char *body;       /* JSON, malloc'ed; the receiver's */
    size_t size;
    int retry_after;  /* seconds; 0: none */
} job_result;

/* A request for the engine. The bytes stay the caller's and must stay in place until `done` is called. */
typedef struct job {
    job_input input;
    void *bytes;
    size_t size;
    uint32_t width, height; /* JOB_PLANE */
    lns_detect_options options;
    /* Returns not 0 when nobody waits for the answer any more; called on a thread of the engine. */
    int (*is_abandoned)(struct job *self);
    /* Called once on a thread of the engine. */
    void (*done)(struct job *self);
    void *user;
    job_result result; /* filled before `done` */
    double queued_at;
    int is_queued; /* not 0: it takes a place in the queue */
    struct job *next;
} job;

typedef struct engine_options {
    metrics *metrics;
    uint64_t max_pixels;
    size_t queue_limit;      /* jobs at once, from their coming to the end of the network */
    double queue_timeout_ms; /* a job that waited longer is refused; 0: no limit */
} engine_options;

/* Jobs may be queued at once; they wait for engine_open(). NULL when memory or threads are missing. */
engine *engine_create(const engine_options *options);
/* Lets the jobs run, on the caller's model, as many at a time as it has threads (8 at most). NULL: there will be no
 * model, and all jobs are answered with 503. */
void engine_open(engine *self, lns_superpoint *model);
/* Waits for the jobs that are queued, then ends the threads. */
void engine_destroy(engine *self);

/* Queues a job. Returns 0, or -1 when the queue is full (`done` is not called then). */
int engine_submit(engine *self, job *work);

/* Jobs that wait or run. */
size_t engine_load(engine *self);
/* Jobs that the network has not done with. */
size_t engine_queue_length(engine *self);

#endif
