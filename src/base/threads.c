/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

/* How often a waiting thread looks before it sleeps: some tens of microseconds, longer than the pause between two layers
 * of the network and shorter than anybody notices. */
#define SPINS 4000

#define LINE __attribute__((aligned(64)))

struct lns_thread_pool {
    int threads;
    int started;   /* workers that exist */
    pid_t process; /* that started them: after a fork, the child has none */
    pthread_t *workers;
    pthread_mutex_t user; /* held by the caller whose loop is running */
    /* The loop. Written by the caller before `generation` moves. */
    lns_task task;
    void *context;
    size_t rounds;
    LINE atomic_size_t next;       /* next round to take */
    LINE atomic_uint generation;   /* counts loops; workers wait for it to move */
    LINE atomic_int busy;          /* workers still in the loop */
    atomic_int stop;
    pthread_mutex_t sleep;
    pthread_cond_t wake;     /* generation moved, or stop */
    pthread_cond_t finished; /* busy became 0 */
    atomic_int sleepers;
    atomic_int caller_sleeps;
};

typedef struct worker_start {
    lns_thread_pool *pool;
    int index;
} worker_start;

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_rounds(lns_thread_pool *pool, int worker) {
    for (;;) {
        const size_t round = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (round >= pool->rounds)
            return;
        pool->task(pool->context, round, worker);
    }
}

/* Waits until the generation differs from `seen`; returns the new one. */
static unsigned wait_for_loop(lns_thread_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        const unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen)
            return now;
        relax();
    }
    pthread_mutex_lock(&pool->sleep);
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->sleep);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->sleep);
    return atomic_load(&pool->generation);
}

static void leave_loop(lns_thread_pool *pool) {
    if (atomic_fetch_sub(&pool->busy, 1) == 1 && atomic_load(&pool->caller_sleeps)) {
        pthread_mutex_lock(&pool->sleep);
        pthread_cond_signal(&pool->finished);
        pthread_mutex_unlock(&pool->sleep);
    }
}

static void *work(void *argument) {
    worker_start start = *(worker_start *)argument;
    lns_free(argument);
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_loop(start.pool, seen);
        if (atomic_load(&start.pool->stop))
            return NULL;
        take_rounds(start.pool, start.index);
        leave_loop(start.pool);
    }
}

static lns_status start_worker(lns_thread_pool *pool, int index) {
    worker_start *start = lns_alloc(sizeof *start);
    if (start == NULL)
        return lns_fail_memory(sizeof *start);
    start->pool = pool;
    start->index = index;
    const int error = pthread_create(&pool->workers[index - 1], NULL, work, start);
    if (error != 0) {
        lns_free(start);
        return lns_fail(LNS_ERROR_SYSTEM, "cannot start thread %d of %d: %s", index + 1, pool->threads,
                        strerror(error));
    }
    pool->started++;
    return LNS_OK;
}

lns_status lns_thread_pool_create(int threads, lns_thread_pool **result) {
    *result = NULL;
    lns_thread_pool *pool = lns_aligned_alloc(sizeof *pool);
    if (pool == NULL)
        return lns_fail_memory(sizeof *pool);
    memset(pool, 0, sizeof *pool);
    pool->threads = threads;
    pool->process = getpid();
    pool->workers = lns_calloc((size_t)threads, sizeof *pool->workers);
    if (pool->workers == NULL) {
        lns_aligned_free(pool);
        return lns_fail_memory((size_t)threads * sizeof *pool->workers);
    }
    pthread_mutex_init(&pool->user, NULL);
    pthread_mutex_init(&pool->sleep, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->finished, NULL);
    for (int i = 1; i < threads; i++) {
        const lns_status status = start_worker(pool, i);
        if (status != LNS_OK) {
            lns_thread_pool_destroy(&pool);
            return status;
        }
    }
    *result = pool;
    return LNS_OK;
}

/* Moves the generation and wakes workers that sleep. */
static void announce(lns_thread_pool *pool) {
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->sleep);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->sleep);
    }
}

static void stop_workers(lns_thread_pool *pool) {
    atomic_store(&pool->stop, 1);
    announce(pool);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->sleep);
    pthread_mutex_destroy(&pool->user);
}

void lns_thread_pool_destroy(lns_thread_pool **pointer) {
    lns_thread_pool *pool = *pointer;
    *pointer = NULL;
    if (pool == NULL)
        return;
    /* A forked child leaves alone what its parent's threads may have held. */
    if (pool->process == getpid())
        stop_workers(pool);
    lns_free(pool->workers);
    lns_aligned_free(pool);
}

int lns_thread_pool_size(const lns_thread_pool *pool) {
    return pool->threads;
}

static void wait_for_workers(lns_thread_pool *pool) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->busy, memory_order_acquire) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->sleep);
    atomic_store(&pool->caller_sleeps, 1);
    while (atomic_load(&pool->busy) > 0)
        pthread_cond_wait(&pool->finished, &pool->sleep);
    atomic_store(&pool->caller_sleeps, 0);
    pthread_mutex_unlock(&pool->sleep);
}

void lns_thread_pool_run(lns_thread_pool *pool, size_t rounds, lns_task task, void *context) {
    const int alone = pool->threads == 1 || rounds <= 1 || pool->process != getpid();
    if (alone || pthread_mutex_trylock(&pool->user) != 0) {
        for (size_t i = 0; i < rounds; i++)
            task(context, i, 0);
        return;
    }
    pool->task = task;
    pool->context = context;
    pool->rounds = rounds;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store(&pool->busy, pool->started);
    announce(pool);
    take_rounds(pool, 0);
    wait_for_workers(pool);
    pthread_mutex_unlock(&pool->user);
}
