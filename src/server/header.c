/* SPDX-License-Identifier: Apache-2.0 */
#include "header.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* libmicrohttpd takes a header apart where it stands: it writes NULs over line ends and colons and tells no lengths. So
 * the bytes between what it found are looked at: there may be blanks and NULs, and anything else is text behind a NUL
 * that the client sent, of a folded line, or behind an early end of the header. */
typedef struct header_check {
    const char *end;  /* of the raw header */
    const char *last; /* end of the last value */
    size_t fields, bytes;
    int lengths, hosts, chunked, bad_coding, malformed;
} header_check;

static int is_gap(const char *from, const char *to) {
    if (from > to)
        return 0;
    for (const char *c = from; c < to; c++)
        if (*c != '\0' && *c != ' ' && *c != '\t' && *c != '\r' && *c != '\n')
            return 0;
    return 1;
}

static int is_name(const char *name, size_t size) {
    static const char more[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        const char c = name[i], lower = (char)(c | 0x20);
        if (c == '\0' || ((c < '0' || c > '9') && (lower < 'a' || lower > 'z') && strchr(more, c) == NULL))
            return 0;
    }
    return size > 0;
}

static int is_value(const char *value, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            return 0;
    return 1;
}

static void count_field(header_check *check, const char *name, const char *value) {
    if (strcasecmp(name, "content-length") == 0) {
        check->lengths++;
    } else if (strcasecmp(name, "host") == 0) {
        check->hosts++;
    } else if (strcasecmp(name, "transfer-encoding") == 0) {
        check->bad_coding |= check->chunked || strcasecmp(value, "chunked") != 0;
        check->chunked = 1;
    }
}

static enum MHD_Result check_field(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                   const char *value, size_t value_size) {
    (void)kind;
    header_check *check = context;
    if (value == NULL)
        value = "";
    check->fields++;
    check->bytes += name_size + value_size + 4;
    const int inside = name >= check->last && value > name && value + value_size < check->end;
    if (!inside || !is_gap(check->last, name) || !is_gap(name + name_size, value) || !is_name(name, name_size) ||
        !is_value(value, value_size)) {
        check->malformed = 1;
        return MHD_YES;
    }
    check->last = value + value_size;
    count_field(check, name, value);
    return MHD_YES;
}

/* Exactly one blank on each side of the target, and none in it. */
static int is_request_line(const request *r, const char *method, const char *version) {
    const size_t length = strlen(r->target);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)r->target[i] <= ' ' || r->target[i] == 0x7f)
            return 0;
    return version == method + strlen(method) + 1 + length + 1;
}

/* Behind the last value there are its line end and an empty line, each of one or two bytes. libmicrohttpd 1 refuses
 * NULs that a client sends, but writes one itself where blanks follow a value. */
static int is_end(const header_check *check) {
    const size_t most = header_library_major() >= 1 ? 5 : 4;
    size_t ends = 0;
    for (const char *c = check->last; c < check->end; c++)
        ends += *c == '\0' || *c == '\r' || *c == '\n';
    return is_gap(check->last, check->end) && ends >= 2 && ends <= most;
}

/* The length must be digits only; libmicrohttpd has read it, but not as strictly. */
static int read_length(request *r) {
    const char *text = request_header(r, "content-length");
    if (text == NULL)
        return 1;
    size_t length = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9')
            return 0;
        const size_t digit = (size_t)(*c - '0');
        length = length > (SIZE_MAX - digit) / 10 ? SIZE_MAX : length * 10 + digit;
    }
    r->content_length = length;
    r->has_length = 1;
    return text[0] != '\0';
}

int header_library_major(void) {
    return atoi(MHD_get_version());
}

int header_problem(request *r, const char *method, const char *version) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (strlen(r->target) > SERVER_MAX_TARGET)
        return 414;
    if (info == NULL || !is_request_line(r, method, version))
        return 400;
    header_check check = {.end = method + info->header_size, .last = version + strlen(version)};
    MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, check_field, &check);
    if (check.fields > SERVER_MAX_HEADERS || check.bytes > SERVER_MAX_HEADER_BYTES)
        return 431;
    if (check.malformed || !is_end(&check) || check.lengths > 1 || (check.lengths > 0 && check.chunked))
        return 400;
    if (check.bad_coding)
        return 501;
    if (check.hosts > 1 || (check.hosts == 0 && strcmp(version, "HTTP/1.1") == 0) || !read_length(r))
        return 400;
    return 0;
}
