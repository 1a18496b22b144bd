/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, standard descriptors, clock and CPUs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

static atomic_int interrupts;
static pthread_t main_thread;

/* The name is only valid while the flag is set: the handler may come in between. */
static char guarded[4096];
static volatile sig_atomic_t guarded_set;

/* The main thread handles every signal, so that a blocking call of it ends. */
static void on_signal(int number) {
    const int saved = errno;
    if (!pthread_equal(pthread_self(), main_thread)) {
        pthread_kill(main_thread, number);
    } else if (atomic_fetch_add(&interrupts, 1) > 0) {
        if (guarded_set)
            unlink(guarded);
        _exit(LNS_CLI_INTERRUPTED);
    }
    errno = saved;
}

/* A closed descriptor would be given to the next file that is opened, which would then receive what is meant for
 * standard output. Opened the wrong way round, every use of it still fails. */
static void take_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(LNS_CLI_OTHER);
    }
}

void lns_cli_process_init(void) {
    take_standard_descriptors();
    main_thread = pthread_self();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    action.sa_handler = on_signal; /* without SA_RESTART: blocking calls return */
    const int caught[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        struct sigaction before;
        /* What the parent chose to ignore stays ignored, as for a job that a shell put in the background. */
        if (sigaction(caught[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
    }
}

static void on_lost_memory(int number) {
    static const char text[] =
        "lensing: the card was reset by another program, or a file shrank, while in use (SIGBUS)\n";
    (void)number;
    if (guarded_set)
        unlink(guarded);
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(LNS_CLI_OTHER);
}

void lns_cli_expect_card(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_lost_memory;
    sigaction(SIGBUS, &action, NULL);
}

bool lns_cli_interrupted(void) {
    return atomic_load(&interrupts) > 0;
}

void lns_cli_guard_file(const char *path) {
    guarded_set = 0;
    if (path != NULL && strlen(path) < sizeof guarded) {
        strcpy(guarded, path);
        guarded_set = 1;
    }
}

double lns_cli_clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int lns_cli_cpu_count(void) {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
        return CPU_COUNT(&allowed);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
