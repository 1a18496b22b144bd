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

/* A loop that is running; it lies on its caller's stack. */
typedef struct loop {
    lns_task task;
    void *context;
    size_t rounds;
    struct loop *next_loop;
    LINE atomic_size_t next;  /* next round to take */
    LINE atomic_int helpers;  /* workers in the loop; more come only while it is in the pool's list */
} loop;

struct lns_thread_pool {
    int threads;
    int started;   /* workers that exist */
    pid_t process; /* that started them: after a fork, the child has none */
    pthread_t *workers;
    pthread_mutex_t lock;    /* for the list, and for sleeping */
    loop *loops;             /* those that workers may join */
    pthread_cond_t wake;     /* generation moved, or stop */
    pthread_cond_t finished; /* helpers of a loop became 0 */
    LINE atomic_uint generation; /* moves when there is something to join; idle workers wait for that */
    LINE atomic_int running;     /* threads that take rounds; helpers leave when it exceeds `threads` */
    atomic_int stop;
    atomic_int sleeping_workers;
    atomic_int sleeping_callers;
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

/* Takes one round and runs it; false when none is left. */
static int take_round(loop *l, int worker) {
    const size_t round = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
    if (round >= l->rounds)
        return 0;
    l->task(l->context, round, worker);
    return 1;
}

/* ---- Workers ------------------------------------------------------------------------------------ */

/* Waits until the generation differs from `seen`. */
static void wait_for_loop(lns_thread_pool *pool, unsigned seen) {
    /* While there is no room for this thread, the CPU is better left to those who have work. */
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool->running, memory_order_relaxed) < pool->threads; i++) {
        if (atomic_load_explicit(&pool->generation, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleeping_workers, 1);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleeping_workers, 1);
    pthread_mutex_unlock(&pool->lock);
}

/* Joins the loop with the fewest helpers, if a thread more may run. */
static loop *join_loop(lns_thread_pool *pool) {
    loop *chosen = NULL;
    pthread_mutex_lock(&pool->lock);
    if (atomic_load(&pool->running) < pool->threads) {
        for (loop *l = pool->loops; l != NULL; l = l->next_loop)
            if (atomic_load(&l->next) < l->rounds &&
                (chosen == NULL || atomic_load(&l->helpers) < atomic_load(&chosen->helpers)))
                chosen = l;
    }
    if (chosen != NULL) {
        atomic_fetch_add(&chosen->helpers, 1);
        atomic_fetch_add(&pool->running, 1);
    }
    pthread_mutex_unlock(&pool->lock);
    return chosen;
}

/* True, once for each thread too many, when a helper has to make room for a caller. */
static int must_leave(lns_thread_pool *pool) {
    int running = atomic_load(&pool->running);
    while (running > pool->threads)
        if (atomic_compare_exchange_weak(&pool->running, &running, running - 1))
            return 1;
    return 0;
}

static void help(lns_thread_pool *pool, loop *l, int worker) {
    int left = 0;
    do {
        left = must_leave(pool);
    } while (!left && take_round(l, worker));
    if (!left)
        atomic_fetch_sub(&pool->running, 1);
    /* From here on the caller may return, and `l` is gone. */
    if (atomic_fetch_sub(&l->helpers, 1) == 1 && atomic_load(&pool->sleeping_callers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->finished);
        pthread_mutex_unlock(&pool->lock);
    }
}

static void *work(void *argument) {
    worker_start start = *(worker_start *)argument;
    lns_free(argument);
    while (!atomic_load(&start.pool->stop)) {
        const unsigned seen = atomic_load(&start.pool->generation);
        loop *l = join_loop(start.pool);
        if (l != NULL)
            help(start.pool, l, start.index);
        else if (!atomic_load(&start.pool->stop))
            wait_for_loop(start.pool, seen);
    }
    return NULL;
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
    pthread_mutex_init(&pool->lock, NULL);
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

static void stop_workers(lns_thread_pool *pool) {
    atomic_store(&pool->stop, 1);
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
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

/* ---- Callers ------------------------------------------------------------------------------------ */

/* Lets workers join, and wakes as many as may run besides those that do. */
static void open_loop(lns_thread_pool *pool, loop *l) {
    pthread_mutex_lock(&pool->lock);
    /* Counted under the lock: a worker that leaves another loop just now is either not counted, or looks for loops after
     * this one is in the list. Else it could fall asleep in between, and nobody would wake it. */
    const int wanted = pool->threads - atomic_fetch_add(&pool->running, 1) - 1;
    l->next_loop = pool->loops;
    pool->loops = l;
    atomic_fetch_add(&pool->generation, 1);
    if (wanted > 0 && atomic_load(&pool->sleeping_workers) > 0) {
        if (wanted == 1)
            pthread_cond_signal(&pool->wake);
        else
            pthread_cond_broadcast(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* No worker joins any more; in the caller's place, one may join another loop. */
static void close_loop(lns_thread_pool *pool, loop *l) {
    pthread_mutex_lock(&pool->lock);
    loop **link = &pool->loops;
    while (*link != l)
        link = &(*link)->next_loop;
    *link = l->next_loop;
    atomic_fetch_sub(&pool->running, 1);
    if (pool->loops != NULL) {
        atomic_fetch_add(&pool->generation, 1);
        if (atomic_load(&pool->sleeping_workers) > 0)
            pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void wait_for_helpers(lns_thread_pool *pool, loop *l) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&l->helpers, memory_order_acquire) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleeping_callers, 1);
    while (atomic_load(&l->helpers) > 0)
        pthread_cond_wait(&pool->finished, &pool->lock);
    atomic_fetch_sub(&pool->sleeping_callers, 1);
    pthread_mutex_unlock(&pool->lock);
}

void lns_thread_pool_run(lns_thread_pool *pool, size_t rounds, lns_task task, void *context) {
    if (pool->threads == 1 || rounds <= 1 || pool->process != getpid()) {
        for (size_t i = 0; i < rounds; i++)
            task(context, i, 0);
        return;
    }
    loop l = {.task = task, .context = context, .rounds = rounds};
    open_loop(pool, &l);
    while (take_round(&l, 0))
        ;
    close_loop(pool, &l);
    wait_for_helpers(pool, &l);
}
