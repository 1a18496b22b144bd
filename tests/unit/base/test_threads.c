/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"

#define ROUNDS 1000

typedef struct tally {
    atomic_int rounds[ROUNDS];
    atomic_int workers[LNS_THREADS_LIMIT]; /* rounds that each worker is in at this moment */
    atomic_int clashes;
} tally;

static void count(void *context, size_t round, int worker) {
    tally *t = context;
    if (atomic_fetch_add(&t->workers[worker], 1) != 0)
        atomic_fetch_add(&t->clashes, 1);
    atomic_fetch_add(&t->rounds[round], 1);
    atomic_fetch_sub(&t->workers[worker], 1);
}

static void check(lns_thread_pool *pool, size_t rounds) {
    tally *t = calloc(1, sizeof *t);
    lns_thread_pool_run(pool, rounds, count, t);
    for (size_t i = 0; i < ROUNDS; i++)
        assert_int_equal(t->rounds[i], i < rounds ? 1 : 0);
    assert_int_equal(t->clashes, 0);
    free(t);
}

static void every_round_runs_once(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 3, 8, 17};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        lns_thread_pool *pool;
        assert_int_equal(lns_thread_pool_create(sizes[s], &pool), LNS_OK);
        assert_int_equal(lns_thread_pool_size(pool), sizes[s]);
        for (int i = 0; i < 200; i++)
            check(pool, (size_t)i * 5 % (ROUNDS + 1));
        lns_thread_pool_destroy(&pool);
        assert_null(pool);
    }
}

static void *use_pool(void *pool) {
    for (int i = 0; i < 200; i++)
        check(pool, ROUNDS);
    return NULL;
}

static void many_callers_share_a_pool(void **state) {
    (void)state;
    lns_thread_pool *pool;
    assert_int_equal(lns_thread_pool_create(3, &pool), LNS_OK);
    pthread_t callers[6];
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, use_pool, pool), 0);
    for (int i = 0; i < 6; i++)
        pthread_join(callers[i], NULL);
    lns_thread_pool_destroy(&pool);
}

/* Rounds that end when four are running, two of each of two loops. */
static void meet(void *context, size_t round, int worker) {
    (void)round;
    (void)worker;
    pthread_barrier_wait(context);
}

typedef struct call {
    lns_thread_pool *pool;
    lns_task task;
    void *context;
    size_t rounds;
} call;

static void *make_call(void *argument) {
    const call *c = argument;
    lns_thread_pool_run(c->pool, c->rounds, c->task, c->context);
    return NULL;
}

static void workers_help_several_callers(void **state) {
    (void)state;
    lns_thread_pool *pool;
    pthread_barrier_t barrier;
    assert_int_equal(lns_thread_pool_create(4, &pool), LNS_OK);
    pthread_barrier_init(&barrier, NULL, 4);
    alarm(20); /* without the help, the rounds wait for ever */
    call c = {pool, meet, &barrier, 2};
    for (int i = 0; i < 200; i++) {
        pthread_t other;
        assert_int_equal(pthread_create(&other, NULL, make_call, &c), 0);
        make_call(&c);
        pthread_join(other, NULL);
    }
    alarm(0);
    pthread_barrier_destroy(&barrier);
    lns_thread_pool_destroy(&pool);
}

#define LONG_LOOP 100000
#define WATCHED 20000

/* A loop in which the pool's second thread helps, and one that another caller starts meanwhile. */
typedef struct encounter {
    lns_thread_pool *pool;
    atomic_int helped;  /* rounds of the long loop that were not run by its caller */
    atomic_int started; /* rounds of it */
    atomic_int done;    /* the other caller has returned */
    int helped_meanwhile;
} encounter;

static void long_round(void *context, size_t round, int worker) {
    (void)round;
    encounter *e = context;
    atomic_fetch_add(&e->helped, worker != 0);
    atomic_fetch_add(&e->started, 1);
}

static void watch(void *context, size_t round, int worker) {
    (void)worker;
    encounter *e = context;
    if (round != 0)
        return;
    const int helped = atomic_load(&e->helped), started = atomic_load(&e->started);
    while (atomic_load(&e->started) < started + WATCHED)
        ;
    e->helped_meanwhile = atomic_load(&e->helped) - helped;
}

static void *interrupt_the_loop(void *argument) {
    encounter *e = argument;
    while (atomic_load(&e->helped) == 0)
        ;
    lns_thread_pool_run(e->pool, 2, watch, e);
    atomic_store(&e->done, 1);
    return NULL;
}

static void a_helper_makes_room_for_a_caller(void **state) {
    (void)state;
    encounter e = {0};
    assert_int_equal(lns_thread_pool_create(2, &e.pool), LNS_OK);
    alarm(60);
    for (int i = 0; i < 10; i++) {
        pthread_t other;
        atomic_store(&e.helped, 0);
        atomic_store(&e.done, 0);
        assert_int_equal(pthread_create(&other, NULL, interrupt_the_loop, &e), 0);
        while (!atomic_load(&e.done))
            lns_thread_pool_run(e.pool, LONG_LOOP, long_round, &e);
        pthread_join(other, NULL);
        /* The round that it is in when the caller comes, and one that it is about to take. */
        assert_in_range(e.helped_meanwhile, 0, 2);
    }
    alarm(0);
    lns_thread_pool_destroy(&e.pool);
}

static void a_pool_works_in_a_forked_child(void **state) {
    (void)state;
    lns_thread_pool *pool;
    assert_int_equal(lns_thread_pool_create(4, &pool), LNS_OK);
    check(pool, ROUNDS);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a loop that waits for threads that are not there ends by this signal */
        tally *t = calloc(1, sizeof *t);
        lns_thread_pool_run(pool, ROUNDS, count, t);
        int missing = 0;
        for (size_t i = 0; i < ROUNDS; i++)
            missing += t->rounds[i] != 1;
        free(t);
        lns_thread_pool_destroy(&pool);
        _exit(missing == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check(pool, ROUNDS);
    lns_thread_pool_destroy(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_runs_once),
        cmocka_unit_test(many_callers_share_a_pool),
        cmocka_unit_test(workers_help_several_callers),
        cmocka_unit_test(a_helper_makes_room_for_a_caller),
        cmocka_unit_test(a_pool_works_in_a_forked_child),
    };
    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
