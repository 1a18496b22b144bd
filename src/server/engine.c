/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "clock.h"
#include "detail.h"

/* Each picture in the network takes some 50 MB. Beyond this number, threads help each other with one picture. */
#define IN_NETWORK_LIMIT 8
/* Besides the threads in the network, one decodes and one writes an answer. */
#define OTHER_THREADS 2

struct engine {
    engine_options options;
    pthread_mutex_t lock; /* for all below down to `threads` */
    pthread_cond_t wake;
    pthread_cond_t turn; /* somebody entered or left the network */
    job *first, *last;
    size_t queued; /* jobs that the network has not done with: in the list, with a thread that decodes, or in it */
    size_t load;   /* those, and the ones whose answers are written */
    int is_open, stop;
    lns_superpoint *model;
    int network_limit, in_network;
    unsigned arrived, entered; /* at the network; who comes first enters first */
    pthread_t threads[IN_NETWORK_LIMIT + OTHER_THREADS];
    int started;
};

/* ---- Answers ------------------------------------------------------------------------------------ */

static void answer_error(job *work, int status, const char *detail) {
    work->result.status = status;
    work->result.body = detail_body(detail, &work->result.size);
}

/* A picture that cannot be read is the client's fault, everything else the server's. */
static void answer_failure(job *work, lns_status status) {
    char text[1200];
    const int client = status == LNS_ERROR_FORMAT || status == LNS_ERROR_CORRUPT || status == LNS_ERROR_LIMIT ||
                       status == LNS_ERROR_UNSUPPORTED;
    static const char *const types[] = {[LNS_ERROR_FORMAT] = "UnidentifiedImageError",
                                        [LNS_ERROR_CORRUPT] = "OSError",
                                        [LNS_ERROR_LIMIT] = "DecompressionBombError",
                                        [LNS_ERROR_OUT_OF_MEMORY] = "MemoryError"};
    const char *type = "RuntimeError";
    if ((size_t)status < sizeof types / sizeof *types && types[status] != NULL)
        type = types[status];
    snprintf(text, sizeof text, "%s%s: %s", client ? "bad image: " : "", type, lns_error_message());
    answer_error(work, client ? 400 : 500, text);
    if (!client) {
        fprintf(stderr, "ERROR:     [superpoint] inference failed: %s\n", lns_error_message());
        fflush(stderr);
    }
}

/* ---- A job -------------------------------------------------------------------------------------- */

/* Makes the plane, or answers the job and returns NULL. */
static lns_plane *make_plane(engine *self, job *work) {
    lns_plane *plane = NULL;
    lns_status status;
    if (work->input == JOB_PLANE) {
        status = lns_plane_from_pixels(work->bytes, work->width, work->height, 0, LNS_PIXEL_GRAY8, &plane);
    } else {
        size_t size = work->size;
        char problem[BASE64_ERROR_SIZE];
        if (work->input == JOB_BASE64 && !base64_decode(work->bytes, size, work->bytes, &size, problem)) {
            char text[BASE64_ERROR_SIZE + 16];
            snprintf(text, sizeof text, "bad image: %s", problem);
            answer_error(work, 400, text);
            return NULL;
        }
        lns_image_options options;
        lns_image_options_init(&options);
        options.max_pixels = self->options.max_pixels;
        status = lns_plane_decode(work->bytes, size, &options, &plane);
    }
    if (status != LNS_OK)
        answer_failure(work, status);
    return plane;
}

static void write_answer(engine *self, job *work, lns_features *features) {
    lns_json_options options;
    lns_json_options_init(&options);
    options.descriptors = work->options.return_descriptors;
    options.serving_path = 1;
    char *text;
    const double start = clock_ms();
    if (lns_features_to_json(features, &options, &text, &work->result.size) != LNS_OK) {
        answer_failure(work, LNS_ERROR_OUT_OF_MEMORY);
        return;
    }
    work->result.status = 200;
    work->result.body = text; /* from malloc, as lns_buffer_free() is free() */
    metrics_detection(self->options.metrics, &features->timing_ms, clock_ms() - start, features->count);
}

/* Not 0 when the job cannot run, waited too long, or nobody waits for it; it is answered then. */
static int refuse(engine *self, job *work) {
    const double waited = clock_ms() - work->queued_at;
    if (self->model == NULL) {
        answer_error(work, 503, "model is shutting down");
        return 1;
    }
    if (self->options.queue_timeout_ms > 0 && waited > self->options.queue_timeout_ms) {
        metrics_late(self->options.metrics);
        answer_error(work, 503, "the server is busy: the request waited too long");
        work->result.retry_after = 1;
        return 1;
    }
    if (work->is_abandoned(work)) {
        metrics_abandoned(self->options.metrics);
        answer_error(work, 503, "the client has gone");
        return 1;
    }
    return 0;
}

/* Makes room for the next. Once for each job: behind the network, or at its end if that comes before. */
static void leave_queue(engine *self, job *work) {
    pthread_mutex_lock(&self->lock);
    self->queued -= work->is_queued ? 1 : 0;
    work->is_queued = 0;
    pthread_mutex_unlock(&self->lock);
}

/* Waits for a place in the network, behind those who came before. */
static void enter_network(engine *self) {
    pthread_mutex_lock(&self->lock);
    const unsigned mine = self->arrived++;
    while (mine != self->entered || self->in_network == self->network_limit)
        pthread_cond_wait(&self->turn, &self->lock);
    self->entered++;
    self->in_network++;
    pthread_cond_broadcast(&self->turn);
    pthread_mutex_unlock(&self->lock);
}

static void leave_network(engine *self) {
    pthread_mutex_lock(&self->lock);
    self->in_network--;
    pthread_cond_broadcast(&self->turn);
    pthread_mutex_unlock(&self->lock);
}

static void run_job(engine *self, job *work) {
    const double start = clock_ms();
    lns_plane *plane = make_plane(self, work);
    if (plane == NULL)
        return;
    const double preprocess = clock_ms() - start;
    lns_features *features = NULL;
    enter_network(self);
    /* Once more, as this may have been a long wait, and the network is what costs most. */
    const int refused = refuse(self, work);
    lns_status status = LNS_OK;
    if (!refused)
        status = lns_superpoint_detect_plane(self->model, plane, &work->options, &features);
    leave_network(self);
    leave_queue(self, work);
    lns_plane_close(&plane);
    if (refused)
        return;
    if (status != LNS_OK) {
        answer_failure(work, status);
        return;
    }
    features->timing_ms.preprocess += preprocess;
    write_answer(self, work, features);
    lns_features_close(&features);
}

/* ---- Threads ------------------------------------------------------------------------------------ */

static job *take_job(engine *self) {
    pthread_mutex_lock(&self->lock);
    while ((self->first == NULL || !self->is_open) && !self->stop)
        pthread_cond_wait(&self->wake, &self->lock);
    job *work = self->first;
    if (work != NULL) {
        self->first = work->next;
        if (self->first == NULL)
            self->last = NULL;
    }
    pthread_mutex_unlock(&self->lock);
    return work;
}

static void *work_through(void *argument) {
    engine *self = argument;
    job *work;
    while ((work = take_job(self)) != NULL) {
        metrics_waited(self->options.metrics, clock_ms() - work->queued_at);
        if (!refuse(self, work))
            run_job(self, work);
        leave_queue(self, work);
        work->done(work);
        pthread_mutex_lock(&self->lock);
        self->load--;
        pthread_mutex_unlock(&self->lock);
    }
    return NULL;
}

/* Starts threads until there are `wanted`, or no more can be had. */
static void start_threads(engine *self, int wanted) {
    while (self->started < wanted && pthread_create(&self->threads[self->started], NULL, work_through, self) == 0)
        self->started++;
}

engine *engine_create(const engine_options *options) {
    engine *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->options = *options;
    self->network_limit = 1;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->wake, NULL);
    pthread_cond_init(&self->turn, NULL);
    start_threads(self, 1 + OTHER_THREADS);
    if (self->started < 1 + OTHER_THREADS) {
        engine_destroy(self);
        return NULL;
    }
    return self;
}

/* As many at once as the model has threads: each then works for a picture of its own, and waits for no other at the ends
 * of layers. With two threads that gains next to nothing, see docs/performance.md. */
static int network_limit(const lns_superpoint *model) {
    lns_superpoint_info info;
    if (model == NULL || lns_superpoint_describe(model, &info, sizeof info) != LNS_OK)
        return 1;
    return info.threads < IN_NETWORK_LIMIT ? info.threads : IN_NETWORK_LIMIT;
}

void engine_open(engine *self, lns_superpoint *model) {
    const int limit = network_limit(model);
    start_threads(self, limit + OTHER_THREADS); /* with fewer, fewer requests run at once */
    pthread_mutex_lock(&self->lock);
    self->network_limit = limit;
    self->model = model;
    self->is_open = 1;
    pthread_cond_broadcast(&self->wake);
    pthread_mutex_unlock(&self->lock);
}

void engine_destroy(engine *self) {
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = 1;
    pthread_cond_broadcast(&self->wake);
    pthread_mutex_unlock(&self->lock);
    for (int i = 0; i < self->started; i++)
        pthread_join(self->threads[i], NULL);
    pthread_cond_destroy(&self->turn);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

int engine_submit(engine *self, job *work) {
    work->next = NULL;
    work->queued_at = clock_ms();
    pthread_mutex_lock(&self->lock);
    const int full = self->queued >= self->options.queue_limit;
    if (!full) {
        if (self->last != NULL)
            self->last->next = work;
        else
            self->first = work;
        self->last = work;
        work->is_queued = 1;
        self->queued++;
        self->load++;
        pthread_cond_signal(&self->wake);
    }
    pthread_mutex_unlock(&self->lock);
    return full ? -1 : 0;
}

size_t engine_load(engine *self) {
    pthread_mutex_lock(&self->lock);
    const size_t load = self->load;
    pthread_mutex_unlock(&self->lock);
    return load;
}

size_t engine_queue_length(engine *self) {
    pthread_mutex_lock(&self->lock);
    const size_t queued = self->queued;
    pthread_mutex_unlock(&self->lock);
    return queued;
}
