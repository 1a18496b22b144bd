/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, running and stopping. The log lines are those that launchers of the server before this one wait for. */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <lensing/lensing.h>

#include "clock.h"
#include "environment.h"
#include "http.h"

struct server {
    const server_options *options;
    server_environment environment;
    lns_superpoint *model;          /* while it is being warmed up */
    _Atomic(lns_superpoint *) warm; /* the same, for all threads, once it is ready */
    metrics *metrics;
    engine *engine;
    http *http;
    atomic_int draining;
    double load_ms, warmup_ms;
};

lns_superpoint *server_model(const server *s) {
    return atomic_load(&((server *)(size_t)s)->warm);
}
const server_options *server_settings(const server *s) {
    return s->options;
}
const server_environment *server_surroundings(const server *s) {
    return &s->environment;
}
int server_uses_card(const server *s) {
    const char *backend = s->options->backend;
    return backend != NULL ? strcmp(backend, "blackhole") == 0 : s->environment.is_blackhole;
}
int server_device_id(const server *s) {
    return s->options->device_id >= 0 ? s->options->device_id : s->environment.device_id;
}
metrics *server_metrics(const server *s) {
    return s->metrics;
}
int server_is_draining(const server *s) {
    return atomic_load(&s->draining);
}
size_t server_queue_length(const server *s) {
    return engine_queue_length(s->engine);
}
size_t server_connections(const server *s) {
    return http_connections(s->http);
}
double server_load_ms(const server *s) {
    return s->load_ms;
}
double server_warmup_ms(const server *s) {
    return s->warmup_ms;
}

/* ---- Log ---------------------------------------------------------------------------------------- */

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("INFO:     ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    fflush(stdout);
}

static void say_failure(const char *reason, int code) {
    fprintf(stderr, "ERROR:    %s\n%s", reason, code == 3 ? "ERROR:    Application startup failed. Exiting.\n" : "");
    fflush(stderr);
}

/* Tells systemd, when it wants to know, how things stand. */
static void notify(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)(void *)&address,
           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
    close(fd);
}

/* ---- Model -------------------------------------------------------------------------------------- */

/* One line, with the words by which launchers know an error and a card that is in use. */
static void explain_card(int device_id, char *reason, size_t size) {
    lns_blackhole_card cards[64];
    size_t count = 0;
    int is_in_use = 0;
    char text[800];
    snprintf(text, sizeof text, "%s", lns_error_message());
    if (lns_blackhole_list(cards, sizeof cards[0], sizeof cards / sizeof cards[0], &count) == LNS_OK)
        for (size_t i = 0; i < count; i++)
            is_in_use |= cards[i].id == device_id && cards[i].problem[0] == '\0' && cards[i].is_in_use;
    snprintf(reason, size, "RuntimeError: %s%s", text, is_in_use ? " (CHIP_IN_USE)" : "");
}

/* When another program resets the card, the driver takes its windows away, and the next access is a SIGBUS. */
static void on_lost_card(int number) {
    static const char text[] = "ERROR:    RuntimeError: the card was reset by another program while in use (SIGBUS)\n";
    (void)number;
    const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(1);
}

static void say_device(const server *s) {
    lns_superpoint_info info;
    lns_superpoint_describe(s->model, &info, sizeof info);
    if (server_uses_card(s)) {
        say("[superpoint] Opening device %d (backend=%s, %s)", server_device_id(s), info.backend, info.device);
        say("[superpoint] Device open: %s, compute grid " SERVER_CARD_GRID, info.backend);
    } else {
        say("[superpoint] Opening device %d (backend=%s, kernels=%s)", server_device_id(s), info.backend,
            info.cpu_path);
        say("[superpoint] Device open: %s, %d threads", info.backend, info.threads);
    }
}

static void say_which_weights(const server *s) {
    const server_environment *e = &s->environment;
    const char *named = s->options->weights != NULL ? s->options->weights : e->repository;
    const char *builtin = lns_weights_builtin();
    if (e->local_dir != NULL && s->options->weights == NULL)
        say("[superpoint] Loading weights from local directory %s", e->local_dir);
    else if (builtin != NULL && strcmp(named, builtin) == 0)
        say("[superpoint] Loading weights %s, which are inside the library", named);
    else
        say("[superpoint] Loading weights %s @ %s", named, e->revision != NULL ? e->revision : "default branch");
}

static int load_model(server *s, char *reason, size_t size) {
    say_which_weights(s);
    lns_superpoint_options options;
    lns_superpoint_options_init(&options);
    options.weights = s->options->weights;
    options.threads = s->options->threads;
    options.precision = s->options->precision;
    options.backend = server_uses_card(s) ? "blackhole" : "cpu";
    if (server_uses_card(s))
        signal(SIGBUS, on_lost_card);
    options.device_id = server_device_id(s);
    const double start = clock_ms();
    const lns_status status = lns_superpoint_open(&options, &s->model);
    if (status != LNS_OK) {
        if (server_uses_card(s) && (status == LNS_ERROR_UNSUPPORTED || status == LNS_ERROR_SYSTEM))
            explain_card(options.device_id, reason, size);
        else
            snprintf(reason, size, "%s", lns_error_message());
        return -1;
    }
    s->load_ms = clock_ms() - start;
    say("[superpoint] Loading weights done in %.1fs", s->load_ms * 1e-3);
    say_device(s);
    return 0;
}

static int are_finite(const float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return 0;
    return 1;
}

/* One run on a black frame: after it all memory that a request needs is there. */
static int warm_up(server *s, char *reason, size_t size) {
    enum { PIXELS = LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT, MAP = PIXELS / 64 * LNS_DESCRIPTOR_SIZE };
    say("[superpoint] Warming up on a 480x640 dummy frame ...");
    uint8_t *frame = calloc(1, PIXELS);
    float *scores = malloc(PIXELS * sizeof *scores), *descriptors = malloc(MAP * sizeof *descriptors);
    int result = frame != NULL && scores != NULL && descriptors != NULL ? 0 : -1;
    if (result != 0)
        snprintf(reason, size, "out of memory");
    const double start = clock_ms();
    if (result == 0 && lns_superpoint_forward(s->model, frame, scores, descriptors) != LNS_OK) {
        snprintf(reason, size, "%s", lns_error_message());
        result = -1;
    } else if (result == 0 && (!are_finite(scores, PIXELS) || !are_finite(descriptors, MAP))) {
        snprintf(reason, size, "warm-up forward produced non-finite outputs");
        result = -1;
    }
    s->warmup_ms = clock_ms() - start;
    free(frame);
    free(scores);
    free(descriptors);
    if (result == 0)
        say("[superpoint] Warmup complete: first forward %.0f ms", s->warmup_ms);
    return result;
}

/* ---- Socket ------------------------------------------------------------------------------------- */

static int open_socket(const server_options *options, int *port, char *reason, size_t size) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)options->port)};
    const int is_v4 = inet_pton(AF_INET, options->host, &v4.sin_addr) == 1;
    if (!is_v4 && inet_pton(AF_INET6, options->host, &v6.sin6_addr) != 1) {
        snprintf(reason, size, "host '%s' is no numeric IPv4 or IPv6 address, such as 127.0.0.1", options->host);
        return -1;
    }
    struct sockaddr *address = is_v4 ? (struct sockaddr *)(void *)&v4 : (struct sockaddr *)(void *)&v6;
    socklen_t length = is_v4 ? sizeof v4 : sizeof v6;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, address, length) != 0 || listen(fd, 1024) != 0 || getsockname(fd, address, &length) != 0) {
        snprintf(reason, size, "[Errno %d] error while attempting to bind on address ('%s', %d), port %d: %s", errno,
                 options->host, options->port, options->port,
                 errno == EADDRINUSE ? "Address already in use" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
    return fd;
}

/* Files and sockets of a launcher that became this program by exec(): nobody would ever close them. */
static void close_inherited(void) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
        return;
#endif
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (limit > 0 && limit < 65536 ? limit : 65536); fd++)
        close(fd);
}

/* The usual limit of 1024 descriptors has no room for as many connections and a few descriptors more. */
static void allow_descriptors(unsigned connections) {
    const rlim_t wanted = (rlim_t)connections + 64;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* without it, clients wait when descriptors run out */
}

/* ---- Life --------------------------------------------------------------------------------------- */

/* Listens before the model is there: a port in use shows at once, and early requests wait instead of failing. Returns
 * the exit code. */
static int start_serving(server *s, int *port, char *reason, size_t size) {
    s->metrics = metrics_create();
    const engine_options engine_settings = {
        .metrics = s->metrics,
        .max_pixels = s->options->limits.max_pixels,
        .queue_limit = s->options->limits.queue,
        .queue_timeout_ms = s->options->limits.queue_timeout_ms,
    };
    s->engine = s->metrics != NULL ? engine_create(&engine_settings) : NULL;
    if (s->engine == NULL) {
        snprintf(reason, size, "out of memory or threads");
        return 3;
    }
    const int fd = open_socket(s->options, port, reason, size);
    if (fd < 0)
        return 1;
    const http_options http_settings = {s, fd, &s->options->limits, s->options->api_key, s->engine, s->metrics};
    const int error = http_start(&http_settings, &s->http);
    if (error != 0) {
        close(fd);
        snprintf(reason, size, "the HTTP server did not start: %s", strerror(error));
        return 3;
    }
    return 0;
}

/* Waits until all requests are answered; a second signal or the limit ends that. */
static void drain(server *s, const sigset_t *signals) {
    const double end = clock_ms() + s->options->limits.drain_timeout_ms;
    while ((http_unfinished(s->http) > 0 || engine_load(s->engine) > 0) && clock_ms() < end) {
        const struct timespec tick = {0, 10 * 1000 * 1000};
        const int again = sigtimedwait(signals, NULL, &tick);
        if (again == SIGTERM || again == SIGINT) {
            say("Forced to stop with %zu unanswered requests", http_unfinished(s->http));
            _exit(1);
        }
    }
}

static void stop_serving(server *s, const sigset_t *signals) {
    say("Shutting down");
    notify("STOPPING=1");
    atomic_store(&s->draining, 1);
    http_stop_listening(s->http);
    drain(s, signals);
    say("Waiting for application shutdown.");
    if (engine_load(s->engine) > 0) {
        say("[superpoint] Requests are still running after the drain time");
        _exit(1);
    }
}

static void free_server(server *s) {
    /* After a start that failed, requests may be waiting for the model. */
    atomic_store(&s->draining, 1);
    if (s->engine != NULL && server_model(s) == NULL)
        engine_open(s->engine, NULL);
    while (s->http != NULL && engine_load(s->engine) > 0)
        nanosleep(&(struct timespec){0, 1000 * 1000}, NULL);
    http_stop(s->http);
    engine_destroy(s->engine);
    metrics_destroy(s->metrics);
    lns_superpoint_close(&s->model);
    server_environment_clear(&s->environment);
}

/* Returns the exit code: 0, 1 when the address cannot be had, or 3. */
static int start(server *s, int *port, char *reason, size_t size) {
    say("Started server process [%ld]", (long)getpid());
    say("Waiting for application startup.");
    if (server_environment_read(&s->environment, reason, size) != 0)
        return 3;
    const int code = start_serving(s, port, reason, size);
    if (code != 0)
        return code;
    if (load_model(s, reason, size) != 0 || warm_up(s, reason, size) != 0)
        return 3;
    atomic_store(&s->warm, s->model);
    engine_open(s->engine, s->model);
    return 0;
}

int server_run(const server_options *options) {
    server s = {.options = options};
    close_inherited();
    allow_descriptors(options->limits.max_connections);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    /* Blocked before any thread exists, so that only sigwait below takes them; as process 1 of a container too. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    int port;
    char reason[1200];
    const int code = start(&s, &port, reason, sizeof reason);
    if (code != 0) {
        free_server(&s);
        say_failure(reason, code);
        return code;
    }
    say("Application startup complete.");
    say("Uvicorn running on http://%s:%d (Press CTRL+C to quit)", options->host, port);
    notify("READY=1");
    int signal_number;
    do {
        sigwait(&signals, &signal_number);
    } while (signal_number == SIGHUP); /* there is nothing to read again */
    stop_serving(&s, &signals);
    say("[superpoint] Closing device");
    free_server(&s);
    say("Application shutdown complete.");
    say("Finished server process [%ld]", (long)getpid());
    return 0;
}
