/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"

#define TICK_MS 50 /* how late a deadline may be noticed */
/* Ticks for which a client is seen to have gone, and libmicrohttpd does nothing with what it has read of it. */
#define TICKS_TO_NOTICE 4

struct guarded {
    int socket;
    double deadline; /* 0: none */
    bool is_reading;
    int ticks_ended; /* for which the client's side was closed */
    guarded *previous, *next;
};

struct guard {
    pthread_mutex_t lock; /* for all below */
    pthread_cond_t wake;  /* stop, or a first connection */
    int stop;
    guarded list; /* of connections; the ends of the list meet here */
    pthread_t watcher;
    int ticker;
};

/* Whether all that the client sent has been read, and its end is what comes next. */
static bool has_ended(int socket) {
    char byte;
    return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* At each tick. Shutting down both directions makes libmicrohttpd see the end of the connection and close it itself.
 * The rest of an answer, megabytes that the system holds for a client that reads slowly, is dropped then. */
static void close_ended(guard *self) {
    const struct linger drop = {.l_onoff = 1, .l_linger = 0};
    const double now = clock_ms();
    for (guarded *c = self->list.next; c != &self->list; c = c->next) {
        if (c->deadline == 0)
            continue;
        c->ticks_ended = c->is_reading && has_ended(c->socket) ? c->ticks_ended + 1 : 0;
        if (now > c->deadline || c->ticks_ended >= TICKS_TO_NOTICE) {
            setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
            shutdown(c->socket, SHUT_RDWR);
            c->deadline = 0;
        }
    }
}

/* While there is no connection, nothing wakes the CPU. */
static void wait_for_tick(guard *self) {
    if (self->list.next == &self->list) {
        pthread_cond_wait(&self->wake, &self->lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&self->wake, &self->lock, &until);
}

static void *watch(void *argument) {
    guard *self = argument;
    pthread_mutex_lock(&self->lock);
    while (!self->stop) {
        wait_for_tick(self);
        close_ended(self);
        eventfd_write(self->ticker, 1);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

guard *guard_create(int ticker) {
    guard *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->ticker = ticker;
    pthread_mutex_init(&self->lock, NULL);
    /* Not the time of day, which may be set back while somebody waits for it. */
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&self->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    self->list.previous = self->list.next = &self->list;
    if (pthread_create(&self->watcher, NULL, watch, self) != 0) {
        free(self);
        return NULL;
    }
    return self;
}

void guard_destroy(guard *self) {
    if (self == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    self->stop = 1;
    pthread_cond_signal(&self->wake);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->watcher, NULL);
    pthread_cond_destroy(&self->wake);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

guarded *guard_add(guard *self, int socket) {
    guarded *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->socket = socket;
    pthread_mutex_lock(&self->lock);
    if (self->list.next == &self->list)
        pthread_cond_signal(&self->wake);
    c->next = &self->list;
    c->previous = self->list.previous;
    c->previous->next = c;
    self->list.previous = c;
    pthread_mutex_unlock(&self->lock);
    return c;
}

void guard_remove(guard *self, guarded *c) {
    if (c == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    c->previous->next = c->next;
    c->next->previous = c->previous;
    pthread_mutex_unlock(&self->lock);
    free(c);
}

void guard_set(guard *self, guarded *c, double milliseconds, bool is_reading) {
    if (c == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    c->deadline = milliseconds < 0 ? 0 : clock_ms() + milliseconds;
    c->is_reading = is_reading;
    c->ticks_ended = 0;
    pthread_mutex_unlock(&self->lock);
}
