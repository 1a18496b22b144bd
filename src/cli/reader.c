/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding on a thread of its own: the next picture is ready when the network is done with the one before. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

struct lns_cli_reader {
    const lns_cli_inputs *inputs;
    const lns_image_options *options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool full;  /* `slot` waits to be taken */
    bool ended; /* nothing comes after `slot` */
    bool stop;  /* the caller wants no more */
    lns_cli_picture slot;
};

/* False when the caller wants no more. Decoding starts only when the slot is free, so that two planes exist at most:
 * the caller's and the next one. */
static bool wait_for_room(lns_cli_reader *reader) {
    pthread_mutex_lock(&reader->mutex);
    while (reader->full && !reader->stop)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    const bool go_on = !reader->stop && !lns_cli_interrupted();
    pthread_mutex_unlock(&reader->mutex);
    return go_on;
}

static void hand_over(lns_cli_reader *reader, const lns_cli_picture *picture) {
    pthread_mutex_lock(&reader->mutex);
    reader->slot = *picture;
    reader->full = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
}

static void *read_pictures(void *argument) {
    lns_cli_reader *reader = argument;
    for (size_t i = 0; i < reader->inputs->count && wait_for_room(reader); i++) {
        lns_cli_picture picture;
        const double start = lns_cli_clock_ms();
        lns_cli_read_plane(reader->inputs->items[i].path, reader->options, &picture.plane, picture.message,
                           sizeof picture.message);
        picture.decode_ms = lns_cli_clock_ms() - start;
        hand_over(reader, &picture);
    }
    pthread_mutex_lock(&reader->mutex);
    reader->ended = true;
    pthread_cond_broadcast(&reader->changed);
    pthread_mutex_unlock(&reader->mutex);
    return NULL;
}

int lns_cli_reader_start(const lns_cli_inputs *inputs, const lns_image_options *options, lns_cli_reader **reader) {
    lns_cli_reader *made = calloc(1, sizeof *made);
    *reader = NULL;
    if (made == NULL)
        return lns_cli_out_of_memory();
    made->inputs = inputs;
    made->options = options;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    const int error = pthread_create(&made->thread, NULL, read_pictures, made);
    if (error != 0) {
        lns_cli_error("cannot start a thread: %s", strerror(error));
        pthread_cond_destroy(&made->changed);
        pthread_mutex_destroy(&made->mutex);
        free(made);
        return LNS_CLI_OTHER;
    }
    *reader = made;
    return LNS_CLI_OK;
}

bool lns_cli_reader_next(lns_cli_reader *reader, lns_cli_picture *picture) {
    pthread_mutex_lock(&reader->mutex);
    while (!reader->full && !reader->ended)
        pthread_cond_wait(&reader->changed, &reader->mutex);
    bool got = reader->full;
    if (got) {
        *picture = reader->slot;
        reader->full = false;
        pthread_cond_broadcast(&reader->changed);
    }
    pthread_mutex_unlock(&reader->mutex);
    if (got && lns_cli_interrupted()) {
        lns_plane_close(&picture->plane);
        got = false;
    }
    return got;
}

void lns_cli_reader_stop(lns_cli_reader **reader) {
    lns_cli_reader *old = *reader;
    *reader = NULL;
    if (old == NULL)
        return;
    pthread_mutex_lock(&old->mutex);
    old->stop = true;
    pthread_cond_broadcast(&old->changed);
    pthread_mutex_unlock(&old->mutex);
    lns_cli_cancel_reading(true);
    pthread_join(old->thread, NULL);
    lns_cli_cancel_reading(false);
    if (old->full)
        lns_plane_close(&old->slot.plane);
    pthread_cond_destroy(&old->changed);
    pthread_mutex_destroy(&old->mutex);
    free(old);
}
