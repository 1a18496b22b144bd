/* SPDX-License-Identifier: Apache-2.0 */
/* lensing serve: the HTTP server. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char lns_cli_serve_help[] = "Usage: lensing serve [OPTION]...\n"
                                  "\n"
                                  "Answers HTTP requests: POST /predict (JSON with a base64 image), /predict_raw\n"
                                  "(the bytes of an image file), /predict_plane (an R plane), GET /info, /health,\n"
                                  "/ready, /v1/models, /metrics, /openapi.json, /docs. The log goes to standard\n"
                                  "output. SIGTERM and SIGINT let running requests finish; a second one does not.\n"
                                  "\n"
                                  "      --host ADDRESS         numeric address to listen on  [127.0.0.1]\n"
                                  "  -p, --port N               0: any free one  [20000]\n"
                                  "  -w, --weights W            a folder, a .safetensors file or a Hugging Face\n"
                                  "                             repository[@revision]  [those of the program]\n"
                                  "  -t, --threads N            threads of the network, 0 to 256; 0: one for each\n"
                                  "                             CPU  [0]\n"
                                  "      --precision P          arithmetic of the network: fp32, or bf16, which is\n"
                                  "                             faster and less exact, and needs AVX512_BF16\n"
                                  "                             [fp32]\n"
                                  "      --backend B            cpu, or blackhole: a Tenstorrent card\n"
                                  "                             [LENSING_BACKEND, or cpu]\n"
                                  "      --device-id N          the card /dev/tenstorrent/N  [TT_DEVICE_ID, or 0]\n"
                                  "      --api-key-file FILE    its first line is a key that requests must bring as\n"
                                  "                             Authorization: Bearer KEY  [no key]\n"
                                  "\n"
                                  "Limits:\n"
                                  "      --max-body N           megabytes of a request body  [192]\n"
                                  "      --max-body-memory N    megabytes of all bodies and answers  [1024]\n"
                                  "      --max-pixels N         of an image; 0: no limit  [178956970]\n"
                                  "      --max-connections N    open at a time  [1024]\n"
                                  "      --queue N              requests at once; more get 503  [64]\n"
                                  "      --queue-timeout S      seconds that a request may wait; 0: any  [30]\n"
                                  "      --header-timeout S     seconds for the header of a request  [10]\n"
                                  "      --body-timeout S       seconds for a body, besides what it takes at the\n"
                                  "                             minimum rate  [30]\n"
                                  "      --write-timeout S      seconds for an answer, likewise  [30]\n"
                                  "      --min-rate N           kilobytes a second  [64]\n"
                                  "      --idle-timeout S       seconds between requests of a connection  [5]\n"
                                  "      --drain-timeout S      seconds to finish after SIGTERM  [30]\n"
                                  "  -h, --help                 this text\n"
                                  "\n"
                                  "Examples:\n"
                                  "  lensing serve\n"
                                  "  lensing serve --host 0.0.0.0 --port 8000 --api-key-file key.txt\n"
                                  "  curl --data-binary @photo.jpg '127.0.0.1:20000/predict_raw?nms_radius=3'\n"
                                  "\n"
                                  "Exit code: 0 stopped by a signal, 1 the address cannot be had, or requests were\n"
                                  "left unanswered at the end, 2 wrong usage, 3 it could not start (weights,\n"
                                  "card, environment, memory), 5 this build has no server.\n";

#if LENSING_SERVER

#include "server/server.h"

typedef struct serve {
    int64_t port, threads, max_body, max_body_memory, max_pixels, connections, queue, idle;
    double queue_timeout, header_timeout, body_timeout, write_timeout, drain_timeout, min_rate;
    int64_t device_id;
    int precision, backend; /* an lns_cli_backend, or -1 */
    const char *key_file;
} serve;

/* The first line of a file, without blanks at its end; NULL after an error, which was reported. */
static char *read_key(const char *path) {
    void *bytes;
    size_t size;
    char message[1024];
    if (!lns_cli_read_bytes(path, &bytes, &size, message, sizeof message)) {
        lns_cli_report_message(path, message);
        return NULL;
    }
    const char *text = bytes;
    size_t length = 0;
    while (length < size && text[length] != '\n' && text[length] != '\0')
        length++;
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == ' '))
        length--;
    char *key = length > 0 ? strndup(text, length) : NULL;
    free(bytes);
    if (key == NULL)
        lns_cli_error("%s: the first line must be the key", path);
    return key;
}

static void apply_limits(const serve *given, server_limits *limits) {
    limits->max_body = (size_t)given->max_body << 20;
    limits->max_body_memory = (size_t)given->max_body_memory << 20;
    limits->max_pixels = (uint64_t)given->max_pixels;
    limits->max_connections = (unsigned)given->connections;
    limits->queue = (size_t)given->queue;
    limits->queue_timeout_ms = given->queue_timeout * 1e3;
    limits->header_timeout_ms = given->header_timeout * 1e3;
    limits->body_timeout_ms = given->body_timeout * 1e3;
    limits->write_timeout_ms = given->write_timeout * 1e3;
    limits->min_rate = given->min_rate; /* kilobytes a second are bytes a millisecond */
    limits->idle_timeout_s = (unsigned)given->idle;
    limits->drain_timeout_ms = given->drain_timeout * 1e3;
}

int lns_cli_serve(int argc, char **argv) {
    server_options options = {.host = "127.0.0.1", .limits = SERVER_DEFAULT_LIMITS};
    serve given = {
        .port = 20000,
        .max_body = 192,
        .max_body_memory = 1024,
        .max_pixels = (int64_t)LNS_DEFAULT_MAX_PIXELS,
        .connections = 1024,
        .queue = 64,
        .idle = 5,
        .queue_timeout = 30,
        .header_timeout = 10,
        .body_timeout = 30,
        .write_timeout = 30,
        .drain_timeout = 30,
        .min_rate = 64,
        .device_id = -1,
        .backend = -1,
    };
    const lns_cli_option table[] = {
        {LNS_CLI_TEXT, "host", 0, &options.host, 0, 0, false, NULL},
        {LNS_CLI_INTEGER, "port", 'p', &given.port, 0, 65535, false, NULL},
        lns_cli_weights_option(&options.weights),
        lns_cli_threads_option(&given.threads),
        lns_cli_precision_option(&given.precision),
        lns_cli_backend_option(&given.backend),
        lns_cli_device_option(&given.device_id),
        {LNS_CLI_TEXT, "api-key-file", 0, &given.key_file, 0, 0, false, NULL},
        {LNS_CLI_INTEGER, "max-body", 0, &given.max_body, 1, 65536, false, NULL},
        {LNS_CLI_INTEGER, "max-body-memory", 0, &given.max_body_memory, 1, 1048576, false, NULL},
        {LNS_CLI_INTEGER, "max-pixels", 0, &given.max_pixels, 0, 1e15, false, NULL},
        {LNS_CLI_INTEGER, "max-connections", 0, &given.connections, 1, 65536, false, NULL},
        {LNS_CLI_INTEGER, "queue", 0, &given.queue, 1, 65536, false, NULL},
        {LNS_CLI_REAL, "queue-timeout", 0, &given.queue_timeout, 0, 86400, false, NULL},
        {LNS_CLI_REAL, "header-timeout", 0, &given.header_timeout, 0, 86400, true, NULL},
        {LNS_CLI_REAL, "body-timeout", 0, &given.body_timeout, 0, 86400, true, NULL},
        {LNS_CLI_REAL, "write-timeout", 0, &given.write_timeout, 0, 86400, true, NULL},
        {LNS_CLI_REAL, "min-rate", 0, &given.min_rate, 0, 1e6, true, NULL},
        {LNS_CLI_INTEGER, "idle-timeout", 0, &given.idle, 1, 86400, false, NULL},
        {LNS_CLI_REAL, "drain-timeout", 0, &given.drain_timeout, 0, 86400, false, NULL},
        {LNS_CLI_END, NULL, 0, NULL, 0, 0, false, NULL},
    };
    int count, code;
    if (!lns_cli_parse(argc, argv, table, lns_cli_serve_help, &count, &code))
        return code;
    if (count > 0) {
        lns_cli_error("serve: takes no arguments, but got '%s'; see `lensing help serve`", argv[1]);
        return LNS_CLI_USAGE;
    }
    if (!lns_cli_check_environment())
        return LNS_CLI_USAGE;
    options.port = (int)given.port;
    options.threads = (int)given.threads;
    options.precision = (lns_precision)given.precision;
    options.device_id = (int)given.device_id;
    if (given.backend >= 0)
        options.backend = given.backend == LNS_CLI_BLACKHOLE ? "blackhole" : "cpu";
    apply_limits(&given, &options.limits);
    char *key = NULL;
    if (given.key_file != NULL) {
        key = read_key(given.key_file);
        if (key == NULL)
            return LNS_CLI_USAGE;
        options.api_key = key;
    }
    code = server_run(&options);
    free(key);
    return code;
}

#else

int lns_cli_serve(int argc, char **argv) {
    const lns_cli_option table[] = {{LNS_CLI_END, NULL, 0, NULL, 0, 0, false, NULL}};
    int count, code;
    if (!lns_cli_parse(argc, argv, table, lns_cli_serve_help, &count, &code))
        return code;
    lns_cli_error("this build has no server: it was made without libmicrohttpd");
    return LNS_CLI_OTHER;
}

#endif
