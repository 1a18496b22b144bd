/* SPDX-License-Identifier: Apache-2.0 */
/* Between libmicrohttpd and the routes: reading requests with limits, suspending connections while the engine works,
 * and sending answers. One thread of libmicrohttpd serves all connections and never waits. */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "detail.h"
#include "header.h"

struct http {
    server *server;
    const server_limits *limits;
    const char *api_key;
    engine *engine;
    metrics *metrics;
    guard *guard;
    struct MHD_Daemon *daemon;
    int ticker;         /* the guard writes to it at each tick, which wakes the daemon */
    int quiet_socket;   /* the listening socket when it no longer listens, or -1 */
    atomic_size_t held; /* bytes of all bodies and answers */
    atomic_size_t connections;
    atomic_size_t unfinished; /* requests that are not answered to the end */
};

static const char json[] = "application/json", plain[] = "text/plain; charset=utf-8";
static const char invalid_request[] = "Invalid HTTP request received.";

/* ---- Answers ------------------------------------------------------------------------------------ */

void request_answer(request *r, int status, const char *content_type, char *body, size_t size) {
    if (r->state >= REQUEST_ANSWERED) {
        free(body);
        return;
    }
    r->state = REQUEST_ANSWERED;
    r->answer.status = status;
    r->answer.content_type = content_type;
    r->answer.body = body;
    r->answer.size = size;
    if (body == NULL) {
        r->answer.status = 500;
        r->answer.content_type = json;
        r->answer.text = "{\"detail\":\"MemoryError: out of memory\"}";
        r->answer.size = strlen(r->answer.text);
    }
}

void request_answer_text(request *r, int status, const char *content_type, const char *text) {
    if (r->state >= REQUEST_ANSWERED)
        return;
    r->state = REQUEST_ANSWERED;
    r->answer.status = status;
    r->answer.content_type = content_type;
    r->answer.text = text;
    r->answer.size = strlen(text);
}

void request_answer_detail(request *r, int status, const char *detail) {
    size_t size = 0;
    char *body = detail_body(detail, &size);
    request_answer(r, status, json, body, size);
}

static void answer_invalid(request *r, int status) {
    request_answer_text(r, status, plain, invalid_request);
    r->answer.close = 1;
}

/* The body has not been read, and will not be. */
static void answer_early(request *r, int status, const char *detail) {
    request_answer_detail(r, status, detail);
    r->answer.close = 1;
}

static const char *status_text(int status) {
    static const struct {
        int status;
        const char *text;
    } texts[] = {{200, "OK"},
                 {307, "Temporary Redirect"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "";
}

/* In the form of uvicorn's access log. Characters that could forge a line are replaced. */
static void log_access(const request *r, const char *method, const char *version) {
    char address[INET6_ADDRSTRLEN] = "-";
    int port = 0;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info != NULL && info->client_addr != NULL) {
        const struct sockaddr *any = info->client_addr;
        if (any->sa_family == AF_INET) {
            struct sockaddr_in v4;
            memcpy(&v4, any, sizeof v4);
            inet_ntop(AF_INET, &v4.sin_addr, address, sizeof address);
            port = ntohs(v4.sin_port);
        } else if (any->sa_family == AF_INET6) {
            struct sockaddr_in6 v6;
            memcpy(&v6, any, sizeof v6);
            inet_ntop(AF_INET6, &v6.sin6_addr, address, sizeof address);
            port = ntohs(v6.sin6_port);
        }
    }
    char target[256];
    size_t n = 0;
    for (; n < sizeof target - 1 && r->target[n] != '\0'; n++) {
        const unsigned char c = (unsigned char)r->target[n];
        target[n] = c < 0x21 || c == 0x7f || c == '"' ? '?' : (char)c;
    }
    target[n] = '\0';
    printf("INFO:     %s:%d - \"%.16s %s %.16s\" %d %s\n", address, port, method, target, version, r->answer.status,
           status_text(r->answer.status));
    fflush(stdout);
}

/* libmicrohttpd 1.0 (to 1.0.1 at least) takes the line end of an extended last chunk for the end of the body, and the
 * trailer behind it for another request, which a proxy may not have seen as one. So no other follows a body in chunks.
 */
static int reads_past_chunks(const request *r) {
    return header_library_major() >= 1 && request_header(r, "transfer-encoding") != NULL;
}

static enum MHD_Result send_answer(http *self, request *r, const char *method, const char *version) {
    answer *a = &r->answer;
    struct MHD_Response *response =
        a->text != NULL ? MHD_create_response_from_buffer(a->size, (void *)(size_t)a->text, MHD_RESPMEM_PERSISTENT)
                        : MHD_create_response_from_buffer(a->size, a->body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    a->body = NULL; /* the response's now */
    char number[16];
    MHD_add_response_header(response, "server", "uvicorn");
    if (a->content_type != NULL)
        MHD_add_response_header(response, "content-type", a->content_type);
    if (a->allow != NULL)
        MHD_add_response_header(response, "allow", a->allow);
    if (a->location != NULL)
        MHD_add_response_header(response, "location", a->location);
    if (a->status == 401)
        MHD_add_response_header(response, "www-authenticate", "Bearer");
    if (a->close || server_is_draining(r->server) || reads_past_chunks(r))
        MHD_add_response_header(response, "connection", "close");
    if (a->retry_after > 0) {
        snprintf(number, sizeof number, "%d", a->retry_after);
        MHD_add_response_header(response, "retry-after", number);
    }
    const enum MHD_Result queued = MHD_queue_response(r->connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    r->state = REQUEST_SENDING;
    log_access(r, method, version);
    metrics_request(self->metrics, r->route != NULL ? r->route->path : "other", a->status, clock_ms() - r->started,
                    r->received, a->size);
    return queued;
}

/* ---- Deadlines ---------------------------------------------------------------------------------- */

static void set_deadline(http *self, struct MHD_Connection *connection, double milliseconds, bool is_reading) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info != NULL)
        guard_set(self->guard, info->socket_context, milliseconds, is_reading);
}

/* What has come buys more time: a body that comes slower than the minimum rate ends soon, whatever its length. */
static void set_body_deadline(http *self, const request *r) {
    const double spent = clock_ms() - r->body_started;
    const double allowed = self->limits->body_timeout_ms + (double)r->received / self->limits->min_rate;
    set_deadline(self, r->connection, allowed > spent ? allowed - spent : 0, true);
}

static void notice_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                              enum MHD_ConnectionNotificationCode code) {
    http *self = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        guarded *c = info != NULL ? guard_add(self->guard, info->connect_fd) : NULL;
        *socket_context = c;
        guard_set(self->guard, c, self->limits->header_timeout_ms, true);
        atomic_fetch_add(&self->connections, 1);
    } else {
        guard_remove(self->guard, *socket_context);
        *socket_context = NULL;
        atomic_fetch_sub(&self->connections, 1);
    }
}

/* ---- Reading ------------------------------------------------------------------------------------ */

/* Called with the request line; what it returns becomes the request of the handler below. */
static void *begin_request(void *context, const char *target, struct MHD_Connection *connection) {
    http *self = context;
    request *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->server = self->server;
    r->http = self;
    r->connection = connection;
    r->started = clock_ms();
    r->target = strdup(target != NULL ? target : "");
    if (r->target == NULL) {
        free(r);
        return NULL;
    }
    const char *mark = strchr(r->target, '?');
    r->query = mark != NULL ? mark + 1 : "";
    atomic_fetch_add(&self->unfinished, 1);
    return r;
}

static void end_request(void *context, struct MHD_Connection *connection, void **slot,
                        enum MHD_RequestTerminationCode code) {
    (void)code;
    http *self = context;
    request *r = *slot;
    *slot = NULL;
    if (r == NULL)
        return;
    /* The connection may wait for its next request as long as idle ones may, and then has the time of a header. */
    set_deadline(self, connection, self->limits->idle_timeout_s * 1000.0 + self->limits->header_timeout_ms, true);
    if (r->fields != NULL)
        r->free_fields(r->fields);
    atomic_fetch_sub(&self->held, r->room + r->answer_room);
    atomic_fetch_sub(&self->unfinished, 1);
    free(r->body);
    free(r->answer.body);
    free(r->answer.location);
    free(r->target);
    free(r);
}

static const route *find_route(const request *r, const char *path) {
    const char *nul = strstr(r->target, "%00"); /* the path ends there for C, but not for the client */
    if (nul != NULL && (r->query[0] == '\0' || nul < r->query))
        return NULL;
    for (const route *candidate = server_routes; candidate->path != NULL; candidate++)
        if (strcmp(candidate->path, path) == 0)
            return candidate;
    return NULL;
}

/* A path with a slash too much goes to the one without. */
static int redirect(request *r, const char *path) {
    const size_t length = strlen(path);
    const char *host = request_header(r, "host");
    if (length < 2 || path[length - 1] != '/' || host == NULL)
        return 0;
    const size_t size = strlen(host) + length + strlen(r->query) + 16;
    char *bare = strndup(path, length - 1), *location = malloc(size);
    const int no_memory = bare == NULL || location == NULL;
    const int known = !no_memory && find_route(r, bare) != NULL;
    if (no_memory) {
        request_answer(r, 500, json, NULL, 0);
    } else if (known) {
        snprintf(location, size, "http://%s%s%s%s", host, bare, r->query[0] != '\0' ? "?" : "", r->query);
        r->answer.location = location;
        location = NULL; /* the request's now */
        request_answer_text(r, 307, NULL, "");
    }
    free(bare);
    free(location);
    return known || no_memory;
}

/* Takes as long for any wrong key of the right length. */
static int has_key(const http *self, const request *r) {
    const char *given = request_header(r, "authorization");
    if (given == NULL || strncasecmp(given, "bearer ", 7) != 0)
        return 0;
    given += 7;
    const size_t length = strlen(self->api_key);
    unsigned char difference = strlen(given) != length;
    for (size_t i = 0; i < length && given[i] != '\0'; i++)
        difference |= (unsigned char)(given[i] ^ self->api_key[i]);
    return difference == 0;
}

static int has_body(const request *r) {
    return r->content_length > 0 || request_header(r, "transfer-encoding") != NULL;
}

static void choose_route(http *self, request *r, const char *path, const char *method) {
    r->route = find_route(r, path);
    if (r->route == NULL) {
        if (!redirect(r, path))
            request_answer_detail(r, 404, "Not Found");
    } else if (strcmp(r->route->method, method) != 0) {
        request_answer_detail(r, 405, "Method Not Allowed");
        r->answer.allow = r->route->method;
    } else if (self->api_key != NULL && !r->route->open && !has_key(self, r)) {
        request_answer_detail(r, 401, "Not authenticated");
    } else if (r->has_length && r->content_length > self->limits->max_body) {
        answer_early(r, 413, "Request body too large");
    } else if (r->route->before_body != NULL) {
        r->route->before_body(r);
    }
    if (r->state == REQUEST_ANSWERED && has_body(r))
        r->answer.close = 1; /* rather than read a body that nobody wants */
}

/* Counts more memory for a request; returns 0, and counts nothing, when all together would have too much. */
static int hold(http *self, size_t more) {
    if (atomic_fetch_add(&self->held, more) + more <= self->limits->max_body_memory)
        return 1;
    atomic_fetch_sub(&self->held, more);
    return 0;
}

/* Room for the body doubles as it comes. The client's word about its length is no reason to set memory aside: a few
 * that announce much and send little would keep all others out. Returns 0 when there is no more. */
static int make_room(http *self, request *r, size_t needed) {
    size_t room = 2 * needed + 16384;
    if (r->has_length && room > r->content_length && needed <= r->content_length)
        room = r->content_length;
    const size_t more = room - r->room;
    if (!hold(self, more))
        return 0;
    unsigned char *body = realloc(r->body, room);
    if (body == NULL) {
        atomic_fetch_sub(&self->held, more);
        return 0;
    }
    r->body = body;
    r->room = room;
    return 1;
}

static void drop_body(http *self, request *r, int status) {
    r->too_large = status;
    atomic_fetch_sub(&self->held, r->room);
    free(r->body);
    r->body = NULL;
    r->size = r->room = 0;
}

/* Keeps a part of the body. Beyond the limit it is only counted, as libmicrohttpd cannot answer before the end; a
 * client that sends twice as much as it may is cut off instead (0). */
static int keep_body(http *self, request *r, const char *data, size_t size) {
    r->received += size;
    set_body_deadline(self, r);
    if (r->received > self->limits->max_body && r->too_large != 413)
        drop_body(self, r, 413);
    if (r->too_large)
        return r->received / 2 <= self->limits->max_body;
    if (r->size + size > r->room && !make_room(self, r, r->size + size)) {
        drop_body(self, r, 503);
        return 1;
    }
    memcpy(r->body + r->size, data, size);
    r->size += size;
    return 1;
}

static void read_header(http *self, request *r, const char *path, const char *method, const char *version) {
    r->state = REQUEST_READING;
    const int problem = header_problem(r, method, version);
    if (problem != 0)
        answer_invalid(r, problem);
    else
        choose_route(self, r, path, method);
    r->body_started = clock_ms();
    set_body_deadline(self, r);
}

static void finish_body(request *r) {
    if (r->too_large == 413) {
        request_answer_detail(r, 413, "Request body too large");
    } else if (r->too_large) {
        request_answer_detail(r, 503, "the server is busy: too many large requests");
        r->answer.retry_after = 1;
    } else if (server_is_draining(r->server) && r->route->handle != NULL && !r->route->open) {
        request_answer_detail(r, 503, "model is shutting down");
        r->answer.close = 1;
    } else {
        r->route->handle(r);
    }
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path, const char *method,
                              const char *version, const char *data, size_t *size, void **slot) {
    http *self = context;
    request *r = *slot;
    (void)connection;
    if (r == NULL)
        return MHD_NO; /* no memory for the request */
    if (r->state == REQUEST_NEW) {
        read_header(self, r, path, method, version);
        /* An answer at this point ends the connection, so without a body it waits for the next call. */
        if (r->state != REQUEST_ANSWERED || !r->answer.close)
            return MHD_YES;
    }
    if (r->state == REQUEST_READING && *size > 0) {
        const int keep = keep_body(self, r, data, *size);
        *size = 0;
        return keep ? MHD_YES : MHD_NO;
    }
    if (r->state == REQUEST_READING) {
        finish_body(r);
        if (r->submitted)
            return MHD_YES; /* and look at it no more: the engine may be answering, and this is called again then */
    }
    const double allowed = self->limits->write_timeout_ms + (double)r->answer.size / self->limits->min_rate;
    set_deadline(self, r->connection, allowed, false);
    return send_answer(self, r, method, version);
}

const char *request_header(const request *r, const char *name) {
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

/* ---- The engine's side -------------------------------------------------------------------------- */

static int is_abandoned(job *work) {
    const request *r = work->user;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    if (info == NULL)
        return 1;
    const ssize_t got = recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* Answers may be larger than their requests by far, and clients that read slowly keep them in memory. */
static void refuse_result(job *work) {
    free(work->result.body);
    work->result.status = 503;
    work->result.body = detail_body("the server is busy: too many large answers", &work->result.size);
    work->result.retry_after = 1;
}

static void take_result(job *work) {
    request *r = work->user;
    http *self = r->http;
    if (hold(self, work->result.size))
        r->answer_room = work->result.size;
    else
        refuse_result(work);
    request_answer(r, work->result.status, json, work->result.body, work->result.size);
    r->answer.retry_after = work->result.retry_after;
    MHD_resume_connection(r->connection);
}

void request_submit(request *r) {
    http *self = r->http;
    r->work.user = r;
    r->work.done = take_result;
    r->work.is_abandoned = is_abandoned;
    /* Suspended first: the answer may be there before this function returns. */
    r->submitted = 1;
    set_deadline(self, r->connection, -1, false);
    MHD_suspend_connection(r->connection);
    if (engine_submit(self->engine, &r->work) == 0)
        return;
    metrics_refused(self->metrics);
    request_answer_detail(r, 503, "the server is busy: the queue is full");
    r->answer.retry_after = 1;
    MHD_resume_connection(r->connection);
}

/* ---- The daemon --------------------------------------------------------------------------------- */

/* The daemon, or NULL. Its thread may call back before this returns. */
static struct MHD_Daemon *start_daemon(http *self, int socket) {
    const server_limits *limits = self->limits;
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL,
                            handle, self, MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT,
                            limits->max_connections, MHD_OPTION_CONNECTION_TIMEOUT, limits->idle_timeout_s,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)64 * 1024, MHD_OPTION_URI_LOG_CALLBACK,
                            begin_request, self, MHD_OPTION_NOTIFY_COMPLETED, end_request, self,
                            MHD_OPTION_NOTIFY_CONNECTION, notice_connection, self, MHD_OPTION_END);
}

/* Makes ticks of the guard wake the daemon. libmicrohttpd (0.9.75 to 1.0.1 at least) takes 128 events at a time, and
 * after just as many it waits for a further one before it looks at them: 128 clients that come at once and then wait
 * for their answers would get none before the idle timeout. Events without a pointer it passes over. Returns 0 or
 * errno. */
static int add_ticker(http *self) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(self->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (info != NULL && epoll_ctl(info->epoll_fd, EPOLL_CTL_ADD, self->ticker, &event) == 0)
        return 0;
    return errno != 0 ? errno : EIO;
}

static void free_http(http *self) {
    if (self->daemon != NULL)
        MHD_stop_daemon(self->daemon);
    if (self->quiet_socket >= 0)
        close(self->quiet_socket);
    guard_destroy(self->guard);
    if (self->ticker >= 0)
        close(self->ticker);
    free(self);
}

int http_start(const http_options *options, http **result) {
    *result = NULL;
    http *self = calloc(1, sizeof *self);
    if (self == NULL)
        return ENOMEM;
    self->server = options->server;
    self->limits = options->limits;
    self->api_key = options->api_key;
    self->engine = options->engine;
    self->metrics = options->metrics;
    self->quiet_socket = -1;
    errno = 0;
    self->ticker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->guard = self->ticker >= 0 ? guard_create(self->ticker) : NULL;
    *result = self;
    self->daemon = self->guard != NULL ? start_daemon(self, options->socket) : NULL;
    int error = errno != 0 ? errno : EIO;
    if (self->daemon != NULL)
        error = add_ticker(self);
    if (error == 0)
        return 0;
    *result = NULL;
    if (self->daemon != NULL)
        MHD_quiesce_daemon(self->daemon); /* the socket stays the caller's */
    free_http(self);
    return error;
}

void http_stop_listening(http *self) {
    /* The daemon may still use its number, so it is closed at the very end. Until then it must not take connections
     * that nobody would answer. */
    self->quiet_socket = MHD_quiesce_daemon(self->daemon);
    if (self->quiet_socket >= 0)
        shutdown(self->quiet_socket, SHUT_RDWR);
}

size_t http_unfinished(const http *self) {
    return atomic_load(&self->unfinished);
}

size_t http_connections(const http *self) {
    return atomic_load(&self->connections);
}

void http_stop(http *self) {
    if (self != NULL)
        free_http(self);
}
