/* SPDX-License-Identifier: Apache-2.0 */
/* Several pictures at a time: each thread reads a picture, decodes it, and takes it through the network. A few threads
 * more than the network takes pictures decode meanwhile, so that a slow disk or a large picture keeps nobody waiting.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Each picture in the network takes some 50 MB. Beyond this number, threads help each other with one picture. */
#define IN_NETWORK_LIMIT 16

struct lns_cli_detector {
    lns_cli_detector_options options;
    size_t in_network_limit;
    size_t window; /* results that may wait, those in work included */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    lns_superpoint *model; /* NULL: not open yet */
    size_t claimed;        /* pictures that a thread has taken */
    size_t delivered;      /* results that the caller has got */
    size_t in_network;
    bool stop; /* the caller wants no more */
    struct slot {
        bool ready;
        lns_cli_found found;
    } * slots; /* of picture i: i % window */
    pthread_t *threads;
    size_t thread_count;
    size_t working; /* threads that have not ended */
};

static bool must_end(const lns_cli_detector *detector) {
    return detector->stop || lns_cli_interrupted();
}

/* Takes the next picture, once there is room for its result. False at the end. */
static bool claim(lns_cli_detector *detector, size_t *index) {
    pthread_mutex_lock(&detector->mutex);
    while (!must_end(detector) && detector->claimed == detector->delivered + detector->window)
        pthread_cond_wait(&detector->changed, &detector->mutex);
    const bool got = !must_end(detector) && detector->claimed < detector->options.inputs->count;
    if (got)
        *index = detector->claimed++;
    pthread_mutex_unlock(&detector->mutex);
    return got;
}

/* False when the caller wants no more. */
static bool enter_network(lns_cli_detector *detector) {
    pthread_mutex_lock(&detector->mutex);
    while (!must_end(detector) && (detector->model == NULL || detector->in_network == detector->in_network_limit))
        pthread_cond_wait(&detector->changed, &detector->mutex);
    const bool entered = !must_end(detector);
    if (entered)
        detector->in_network++;
    pthread_mutex_unlock(&detector->mutex);
    return entered;
}

static void leave_network(lns_cli_detector *detector) {
    pthread_mutex_lock(&detector->mutex);
    detector->in_network--;
    pthread_cond_broadcast(&detector->changed);
    pthread_mutex_unlock(&detector->mutex);
}

static void keep_message(lns_cli_found *found) {
    snprintf(found->message, sizeof found->message, "%s", lns_error_message());
}

/* Without a message when it was given up. */
static void find(lns_cli_detector *detector, const lns_cli_input *input, lns_cli_found *found) {
    const lns_cli_detector_options *options = &detector->options;
    const double start = lns_cli_clock_ms();
    lns_plane *plane = NULL;
    lns_cli_read_plane(input->path, options->image, &plane, found->message, sizeof found->message);
    const double decode_ms = lns_cli_clock_ms() - start;
    if (plane != NULL && enter_network(detector)) {
        if (lns_superpoint_detect_plane(detector->model, plane, options->detect, &found->features) != LNS_OK)
            keep_message(found);
        leave_network(detector);
    }
    if (found->features != NULL) {
        found->features->timing_ms.preprocess += decode_ms;
        if (options->draw) {
            found->draw_status = lns_draw_keypoints(plane, found->features, &found->drawing, &found->drawing_size);
            if (found->draw_status != LNS_OK)
                keep_message(found);
        }
        if (options->keep_planes) {
            found->plane = plane;
            plane = NULL;
        }
    }
    lns_plane_close(&plane);
}

static void *find_in_pictures(void *argument) {
    lns_cli_detector *detector = argument;
    for (size_t i; claim(detector, &i);) {
        lns_cli_found found = {0};
        find(detector, &detector->options.inputs->items[i], &found);
        pthread_mutex_lock(&detector->mutex);
        detector->slots[i % detector->window] = (struct slot){true, found};
        pthread_cond_broadcast(&detector->changed);
        pthread_mutex_unlock(&detector->mutex);
    }
    pthread_mutex_lock(&detector->mutex);
    detector->working--;
    pthread_cond_broadcast(&detector->changed);
    pthread_mutex_unlock(&detector->mutex);
    return NULL;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Returns 0, or the error for which not a single thread could be started. With some of them it just takes longer. */
static int start_threads(lns_cli_detector *detector, size_t count) {
    int error = 0;
    pthread_mutex_lock(&detector->mutex);
    for (size_t i = 0; i < count && error == 0; i++) {
        error = pthread_create(&detector->threads[i], NULL, find_in_pictures, detector);
        detector->thread_count += error == 0;
    }
    detector->working = detector->thread_count;
    pthread_mutex_unlock(&detector->mutex);
    return detector->thread_count > 0 ? 0 : error;
}

int lns_cli_detector_start(const lns_cli_detector_options *options, lns_cli_detector **detector) {
    const size_t pictures = options->inputs->count;
    const size_t threads = options->threads > 0 ? (size_t)options->threads : (size_t)lns_cli_cpu_count();
    const size_t in_network = smaller(threads, IN_NETWORK_LIMIT);
    const size_t count = smaller(in_network + 1 + in_network / 4, pictures);
    *detector = NULL;
    lns_cli_detector *made = calloc(1, sizeof *made);
    if (made == NULL)
        return lns_cli_out_of_memory();
    made->options = *options;
    made->in_network_limit = in_network;
    made->window = 2 * count;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    made->slots = calloc(made->window, sizeof *made->slots);
    made->threads = calloc(count, sizeof *made->threads);
    int code = LNS_CLI_OK;
    if (made->slots == NULL || made->threads == NULL) {
        code = lns_cli_out_of_memory();
    } else {
        const int error = start_threads(made, count);
        if (error != 0) {
            lns_cli_error("cannot start a thread: %s", strerror(error));
            code = LNS_CLI_OTHER;
        }
    }
    if (code != LNS_CLI_OK)
        lns_cli_detector_stop(&made);
    *detector = made;
    return code;
}

void lns_cli_detector_use(lns_cli_detector *detector, lns_superpoint *model) {
    pthread_mutex_lock(&detector->mutex);
    detector->model = model;
    pthread_cond_broadcast(&detector->changed);
    pthread_mutex_unlock(&detector->mutex);
}

bool lns_cli_detector_next(lns_cli_detector *detector, lns_cli_found *found) {
    bool got = false;
    *found = (lns_cli_found){0};
    pthread_mutex_lock(&detector->mutex);
    if (detector->delivered < detector->options.inputs->count) {
        struct slot *slot = &detector->slots[detector->delivered % detector->window];
        while (!slot->ready && detector->working > 0)
            pthread_cond_wait(&detector->changed, &detector->mutex);
        got = slot->ready && !must_end(detector);
        if (got) {
            *found = slot->found;
            slot->ready = false;
            detector->delivered++;
            pthread_cond_broadcast(&detector->changed);
        }
    }
    pthread_mutex_unlock(&detector->mutex);
    return got;
}

void lns_cli_found_free(lns_cli_found *found) {
    lns_features_close(&found->features);
    lns_plane_close(&found->plane);
    lns_buffer_free(found->drawing);
    found->drawing = NULL;
}

void lns_cli_detector_stop(lns_cli_detector **detector) {
    lns_cli_detector *old = *detector;
    *detector = NULL;
    if (old == NULL)
        return;
    pthread_mutex_lock(&old->mutex);
    old->stop = true;
    pthread_cond_broadcast(&old->changed);
    pthread_mutex_unlock(&old->mutex);
    lns_cli_cancel_reading(true);
    for (size_t i = 0; i < old->thread_count; i++)
        pthread_join(old->threads[i], NULL);
    lns_cli_cancel_reading(false);
    for (size_t i = 0; i < old->window && old->slots != NULL; i++)
        if (old->slots[i].ready)
            lns_cli_found_free(&old->slots[i].found);
    pthread_cond_destroy(&old->changed);
    pthread_mutex_destroy(&old->mutex);
    free(old->slots);
    free(old->threads);
    free(old);
}
