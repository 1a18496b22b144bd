/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request on its way through the server. */
#ifndef LENSING_SERVER_REQUEST_H
#define LENSING_SERVER_REQUEST_H

#include <stddef.h>

#include <microhttpd.h>

#include "engine.h"
#include "environment.h"
#include "guard.h"
#include "server.h"

typedef struct server server;
typedef struct request request;
typedef struct http http;

/* A route answers with request_answer...() at once, or hands a job to the engine with request_submit(). */
typedef struct route {
    const char *path;
    const char *method; /* "GET" or "POST" */
    void (*handle)(request *r);
    /* Looked at before the body is read; may answer. NULL: nothing to look at. */
    void (*before_body)(request *r);
    int open; /* not 0: needs no API key */
} route;

typedef enum request_state {
    REQUEST_NEW,       /* the target is known */
    REQUEST_READING,   /* the header is there; the engine may have the request */
    REQUEST_ANSWERED,  /* `answer` is set */
    REQUEST_SENDING    /* libmicrohttpd has the answer */
} request_state;

typedef struct answer {
    int status;
    const char *content_type;
    const char *text; /* a constant text, or NULL */
    char *body;       /* else malloc'ed */
    size_t size;
    const char *allow;    /* header Allow, or NULL */
    char *location;       /* header Location, malloc'ed, or NULL */
    int retry_after;      /* seconds; 0: no header */
    int close;            /* not 0: the connection ends with this answer */
} answer;

struct request {
    server *server;
    http *http;
    struct MHD_Connection *connection;
    char *target;      /* as received, with the query; malloc'ed */
    const char *query; /* inside target, behind the "?"; "" when there is none */
    const route *route;
    request_state state;
    double started; /* clock_ms() */
    size_t content_length;
    int has_length;
    unsigned char *body;
    size_t size, room;
    size_t answer_room; /* bytes of the answer that are counted as held */
    size_t received; /* bytes of the body that came, also those not kept */
    double body_started; /* clock_ms() */
    int too_large;       /* status to refuse the body with, or 0 */
    int submitted;       /* not 0: the engine had `work`; for the network thread only */
    job work;
    void *fields; /* what the job's bytes lie in; freed with the request */
    void (*free_fields)(void *fields);
    answer answer;
};

/* Answers; the first answer counts. `body` becomes the request's and may be NULL when memory is missing: 500 then. */
void request_answer(request *r, int status, const char *content_type, char *body, size_t size);
void request_answer_text(request *r, int status, const char *content_type, const char *text);
void request_answer_detail(request *r, int status, const char *detail);

/* Hands r->work to the engine, or answers 503 when the queue is full. */
void request_submit(request *r);

/* Value of a header field; NULL when there is none. */
const char *request_header(const request *r, const char *name);

/* Facts for the routes. */
lns_superpoint *server_model(const server *s); /* NULL until it is warm */
const server_options *server_settings(const server *s);
const server_environment *server_surroundings(const server *s);
int server_uses_card(const server *s); /* not 0: the network runs on a Blackhole card, or is to */
int server_device_id(const server *s); /* which card, by options or environment; a number without meaning on the CPU */
#define SERVER_CARD_GRID "12x10"       /* tiles of a card that the network uses */
metrics *server_metrics(const server *s);
int server_is_draining(const server *s);
size_t server_queue_length(const server *s);
size_t server_connections(const server *s);
double server_load_ms(const server *s);    /* what loading the weights took; once the model is warm */
double server_warmup_ms(const server *s);  /* what the first forward took, likewise */

/* The routes; the last has path NULL. */
extern const route server_routes[];

#endif
