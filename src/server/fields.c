/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "error_body.h"

#define MAX_KEYPOINTS 307200
#define MAX_NMS_RADIUS 32
#define MAX_SIDE 8192
/* Bytes of a wrong value that an error shows. With more it would not help anybody, and be as large as the request. */
#define SHOWN_INPUT 16384

typedef enum fault_kind {
    NO_FAULT,
    MISSING,
    INT_PARSING,
    INT_PARSING_SIZE,
    INT_FROM_FLOAT,
    INT_TYPE,
    FINITE_NUMBER,
    FLOAT_PARSING,
    FLOAT_TYPE,
    BOOL_PARSING,
    BOOL_TYPE,
    STRING_TYPE,
    STRING_UNICODE,
    GREATER_THAN_EQUAL,
    LESS_THAN_EQUAL,
    MODEL_ATTRIBUTES_TYPE,
    JSON_FAULT,
} fault_kind;

/* Clients compare these texts: they are those of pydantic and FastAPI. A limit follows some. */
static const struct {
    const char *type;
    const char *message;
} fault_texts[] = {
    [MISSING] = {"missing", "Field required"},
    [INT_PARSING] = {"int_parsing", "Input should be a valid integer, unable to parse string as an integer"},
    [INT_PARSING_SIZE] = {"int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size"},
    [INT_FROM_FLOAT] = {"int_from_float", "Input should be a valid integer, got a number with a fractional part"},
    [INT_TYPE] = {"int_type", "Input should be a valid integer"},
    [FINITE_NUMBER] = {"finite_number", "Input should be a finite number"},
    [FLOAT_PARSING] = {"float_parsing", "Input should be a valid number, unable to parse string as a number"},
    [FLOAT_TYPE] = {"float_type", "Input should be a valid number"},
    [BOOL_PARSING] = {"bool_parsing", "Input should be a valid boolean, unable to interpret input"},
    [BOOL_TYPE] = {"bool_type", "Input should be a valid boolean"},
    [STRING_TYPE] = {"string_type", "Input should be a valid string"},
    [STRING_UNICODE] = {"string_unicode",
                        "Input should be a valid string, unable to parse raw data as a unicode string"},
    [GREATER_THAN_EQUAL] = {"greater_than_equal", "Input should be greater than or equal to "},
    [LESS_THAN_EQUAL] = {"less_than_equal", "Input should be less than or equal to "},
    [MODEL_ATTRIBUTES_TYPE] = {"model_attributes_type",
                               "Input should be a valid dictionary or object to extract fields from"},
    [JSON_FAULT] = {"json_invalid", "JSON decode error"},
};

/* --- Numbers in strings ---------------------------------------------------------------------------------------------
 */

typedef struct text_span {
    const char *at;
    const char *end;
} text_span;

/* Size of the character of Unicode's property White_Space that begins at `at`; 0 if there is none. */
static size_t blank_size(const char *at, const char *end) {
    const uint8_t *c = (const uint8_t *)at;
    const ptrdiff_t rest = end - at;
    if (rest >= 1 && (c[0] == ' ' || (c[0] >= '\t' && c[0] <= '\r')))
        return 1;
    if (rest >= 2 && c[0] == 0xC2 && (c[1] == 0x85 || c[1] == 0xA0))
        return 2;
    if (rest < 3)
        return 0;
    const uint32_t three = (uint32_t)c[0] << 16 | (uint32_t)c[1] << 8 | c[2];
    const bool blank = three == 0xE19A80 || (three >= 0xE28080 && three <= 0xE2808A) || three == 0xE280A8 ||
                       three == 0xE280A9 || three == 0xE280AF || three == 0xE2819F || three == 0xE38080;
    return blank ? 3 : 0;
}

static text_span trim(const char *text, size_t size) {
    text_span span = {text, text + size};
    size_t blank;
    while ((blank = blank_size(span.at, span.end)) > 0)
        span.at += blank;
    for (bool more = true; more && span.at < span.end;) {
        more = false;
        for (ptrdiff_t back = 1; back <= 3 && back <= span.end - span.at && !more; back++) {
            if (blank_size(span.end - back, span.end) == (size_t)back) {
                span.end -= back;
                more = true;
            }
        }
    }
    return span;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Whole number of the digits in the text, others skipped. false: it needs more than 64 bits, and stops at their end. */
static bool whole_number(text_span text, bool negative, int64_t *value) {
    uint64_t size = 0;
    for (const char *c = text.at; c < text.end; c++) {
        if (is_digit(*c) && size <= INT64_MAX / 10)
            size = 10 * size + (uint64_t)(*c - '0');
        else if (is_digit(*c))
            size = UINT64_MAX;
    }
    const bool fits = size <= (uint64_t)INT64_MAX + negative;
    if (negative)
        *value = fits && size <= INT64_MAX ? -(int64_t)size : INT64_MIN;
    else
        *value = fits ? (int64_t)size : INT64_MAX;
    return fits;
}

/* One sign, digits with single underscores between them, and a point with zeros. (pydantic 2.13 also took a sign or
 * more underscores behind zeros: "0-2" was -2.) */
static fault_kind integer_from_string(const char *text, size_t size, int64_t *value) {
    text_span span = trim(text, size);
    const bool negative = span.at < span.end && *span.at == '-';
    if (span.at < span.end && (*span.at == '-' || *span.at == '+'))
        span.at++;
    const char *at = span.at;
    size_t significant = 0;
    for (; at < span.end && (is_digit(*at) || *at == '_'); at++) {
        if (*at == '_' && (at == span.at || at + 1 == span.end || !is_digit(at[1])))
            return INT_PARSING;
        significant += significant > 0 || (*at != '0' && *at != '_');
    }
    if (at == span.at)
        return INT_PARSING;
    const text_span digits = {span.at, at};
    if (at < span.end) {
        if (*at++ != '.' || at == span.end)
            return INT_PARSING;
        while (at < span.end && *at == '0')
            at++;
    }
    if (at < span.end)
        return INT_PARSING;
    if (significant > JSON_INTEGER_DIGITS)
        return INT_PARSING_SIZE;
    whole_number(digits, negative, value);
    return NO_FAULT;
}

/* Takes single underscores away. A copy for free(); NULL if there is an underscore at an end or two together, or if
 * there is no memory. */
static char *without_underscores(text_span text, bool *no_memory) {
    *no_memory = false;
    if (text.at == text.end || *text.at == '_' || text.end[-1] == '_')
        return NULL;
    char *copy = malloc((size_t)(text.end - text.at) + 1);
    *no_memory = copy == NULL;
    char *out = copy;
    for (const char *c = text.at; copy != NULL && c < text.end; c++) {
        if (*c != '_') {
            *out++ = *c;
        } else if (c[1] == '_') {
            free(copy);
            return NULL;
        }
    }
    if (copy != NULL)
        *out = '\0';
    return copy;
}

static bool is_name_of_number(const char *text) {
    return strcasecmp(text, "inf") == 0 || strcasecmp(text, "infinity") == 0 || strcasecmp(text, "nan") == 0;
}

/* A decimal with digits before or behind the point and perhaps an exponent, or a name; strtod() takes more than these.
 */
static bool is_decimal(const char *text) {
    text += *text == '+' || *text == '-';
    if (is_name_of_number(text))
        return true;
    size_t digits = 0;
    for (; is_digit(*text); text++)
        digits++;
    text += *text == '.';
    for (; is_digit(*text); text++)
        digits++;
    if (digits == 0)
        return false;
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        if (!is_digit(*text))
            return false;
        while (is_digit(*text))
            text++;
    }
    return *text == '\0';
}

static fault_kind real_from_string(const char *text, size_t size, double *value, bool *no_memory) {
    const text_span span = trim(text, size);
    const size_t trimmed = (size_t)(span.end - span.at);
    /* Blanks around the number or underscores in it, not both. */
    const bool mixed = trimmed < size && memchr(span.at, '_', trimmed) != NULL;
    char *copy = mixed || memchr(text, '\0', size) != NULL ? NULL : without_underscores(span, no_memory);
    if (copy == NULL)
        return FLOAT_PARSING;
    const bool good = is_decimal(copy);
    if (good)
        *value = strtod(copy, NULL); /* the program never leaves the "C" locale */
    free(copy);
    return good ? NO_FAULT : FLOAT_PARSING;
}

/* --- Values of JSON -------------------------------------------------------------------------------------------------
 */

/* Whether Python could encode the string: it has no lone surrogate. */
static bool is_unicode(const json_node *node) {
    const char *at = node->text, *end = node->text + node->size;
    while ((at = memchr(at, 0xED, (size_t)(end - at))) != NULL) {
        if ((uint8_t)at[1] >= 0xA0)
            return false;
        at++;
    }
    return true;
}

static fault_kind read_integer(const json_node *node, int64_t *value, bool *no_memory) {
    double real = 0;
    switch (node->kind) {
    case JSON_FALSE:
    case JSON_TRUE:
        *value = node->kind == JSON_TRUE;
        return NO_FAULT;
    case JSON_INTEGER:
        whole_number((text_span){node->text, node->text + node->size}, node->text[0] == '-', value);
        return NO_FAULT;
    case JSON_REAL:
        *no_memory = !json_number(node->text, node->size, &real);
        if (!isfinite(real))
            return FINITE_NUMBER;
        if (real != trunc(real))
            return INT_FROM_FLOAT;
        if (fabs(real) >= 0x1p63)
            return INT_PARSING_SIZE;
        *value = (int64_t)real;
        return NO_FAULT;
    case JSON_STRING:
        return is_unicode(node) ? integer_from_string(node->text, node->size, value) : STRING_UNICODE;
    default:
        return INT_TYPE;
    }
}

static fault_kind read_real(const json_node *node, double *value, bool *no_memory) {
    switch (node->kind) {
    case JSON_FALSE:
    case JSON_TRUE:
        *value = node->kind == JSON_TRUE;
        return NO_FAULT;
    case JSON_INTEGER:
    case JSON_REAL:
        *no_memory = !json_number(node->text, node->size, value);
        if (node->kind == JSON_INTEGER && node->size == 2 && node->text[0] == '-' && node->text[1] == '0')
            *value = 0;
        return node->kind == JSON_INTEGER && isinf(*value) ? FLOAT_TYPE : NO_FAULT;
    case JSON_STRING:
        return is_unicode(node) ? real_from_string(node->text, node->size, value, no_memory) : STRING_UNICODE;
    default:
        return FLOAT_TYPE;
    }
}

static bool fits_64_bits(const json_node *node) {
    int64_t value;
    return node->kind != JSON_INTEGER ||
           whole_number((text_span){node->text, node->text + node->size}, node->text[0] == '-', &value);
}

static fault_kind boolean_from_string(const char *text, size_t size, bool *value) {
    static const char *const words[] = {"0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i]) == size && strncasecmp(words[i], text, size) == 0) {
            *value = i >= 6;
            return NO_FAULT;
        }
    }
    return BOOL_PARSING;
}

static fault_kind read_boolean(const json_node *node, bool *value, bool *no_memory) {
    int64_t whole = 0;
    switch (node->kind) {
    case JSON_FALSE:
    case JSON_TRUE:
        *value = node->kind == JSON_TRUE;
        return NO_FAULT;
    case JSON_INTEGER:
    case JSON_REAL:
        /* A whole number that fits into 64 bits is an attempt at 0 or 1, any other is of the wrong type. */
        if (read_integer(node, &whole, no_memory) != NO_FAULT || !fits_64_bits(node))
            return BOOL_TYPE;
        *value = whole == 1;
        return whole == 0 || whole == 1 ? NO_FAULT : BOOL_PARSING;
    case JSON_STRING:
        return is_unicode(node) ? boolean_from_string(node->text, node->size, value) : STRING_UNICODE;
    default:
        return BOOL_TYPE;
    }
}

/* --- Fields ---------------------------------------------------------------------------------------------------------
 */

/* Where fields come from, and what was wrong with them. */
typedef struct field_check {
    const query_string *query; /* or */
    json_document *document;   /* with an object */
    error_list errors;
    bool no_memory;
} field_check;

/* The value of a field, as a string if it is from a query; false if it is not there. */
static bool find_value(const field_check *check, const char *name, json_node *value) {
    if (check->document != NULL) {
        const json_node *found = json_find(check->document, check->document->nodes, name);
        if (found != NULL)
            *value = *found;
        return found != NULL;
    }
    const query_parameter *found = query_find(check->query, name);
    if (found != NULL)
        *value = (json_node){.text = (char *)found->value, .size = found->value_size, .kind = JSON_STRING};
    return found != NULL;
}

/* Shows a value as it was received, or its size if that is large. */
static void write_received(json_document *document, const json_node *node, text_buffer *buffer) {
    size_t size = 0;
    for (const json_node *each = node; each < document->nodes + node->end; each++)
        size += each->size + 2; /* with quotes, or brackets, or a comma and a colon */
    char text[64];
    snprintf(text, sizeof text, "\"(about %zu bytes, not shown)\"", size);
    if (size > SHOWN_INPUT)
        text_buffer_add_text(buffer, text);
    else
        json_write_value(document, node, buffer);
}

static void write_input(field_check *check, const char *name) {
    text_buffer *buffer = check->errors.buffer;
    if (check->document != NULL) {
        const json_node *found = json_find(check->document, check->document->nodes, name);
        write_received(check->document, found != NULL ? found : check->document->nodes, buffer);
        return;
    }
    const query_parameter *found = query_find(check->query, name);
    if (found != NULL)
        json_write_string(buffer, found->value, found->value_size);
    else
        text_buffer_add_text(buffer, "null");
}

/* `limit` is the one that the value is beyond, `real_limit` says that it is shown as a float. */
static void add_fault(field_check *check, fault_kind fault, const char *name, int limit, bool real_limit) {
    if (fault == NO_FAULT)
        return;
    char field[32], message[128], context[32];
    snprintf(field, sizeof field, "\"%s\"", name);
    snprintf(message, sizeof message, "%s", fault_texts[fault].message);
    const bool ranged = fault == GREATER_THAN_EQUAL || fault == LESS_THAN_EQUAL;
    if (ranged) {
        snprintf(message, sizeof message, "%s%d", fault_texts[fault].message, limit);
        snprintf(context, sizeof context, "{\"%s\":%d%s}", fault == LESS_THAN_EQUAL ? "le" : "ge", limit,
                 real_limit ? ".0" : "");
    }
    error_list_open(&check->errors, fault_texts[fault].type, check->document != NULL ? "body" : "query", field,
                    message);
    write_input(check, name);
    error_list_close(&check->errors, ranged ? context : NULL);
}

static void check_integer(field_check *check, const char *name, bool required, int low, int high, int32_t *result) {
    json_node node;
    int64_t value = 0;
    if (!find_value(check, name, &node)) {
        add_fault(check, required ? MISSING : NO_FAULT, name, 0, false);
        return;
    }
    bool no_memory = false;
    fault_kind fault = read_integer(&node, &value, &no_memory);
    if (fault == NO_FAULT)
        fault = value > high ? LESS_THAN_EQUAL : value < low ? GREATER_THAN_EQUAL : NO_FAULT;
    add_fault(check, fault, name, fault == LESS_THAN_EQUAL ? high : low, false);
    check->no_memory |= no_memory;
    if (fault == NO_FAULT)
        *result = (int32_t)value;
}

static void check_threshold(field_check *check, const char *name, double *result) {
    json_node node;
    double value = 0;
    if (!find_value(check, name, &node))
        return;
    bool no_memory = false;
    fault_kind fault = read_real(&node, &value, &no_memory);
    if (fault == NO_FAULT)
        fault = !(value <= 1) ? LESS_THAN_EQUAL : value < 0 ? GREATER_THAN_EQUAL : NO_FAULT;
    add_fault(check, fault, name, fault == LESS_THAN_EQUAL ? 1 : 0, true);
    check->no_memory |= no_memory;
    if (fault == NO_FAULT)
        *result = value;
}

static void check_boolean(field_check *check, const char *name, bool *result) {
    json_node node;
    if (!find_value(check, name, &node))
        return;
    bool no_memory = false;
    add_fault(check, read_boolean(&node, result, &no_memory), name, 0, false);
    check->no_memory |= no_memory;
}

static void check_image(field_check *check, predict_fields *fields) {
    json_node node;
    if (!find_value(check, "image", &node)) {
        add_fault(check, MISSING, "image", 0, false);
        return;
    }
    add_fault(check, node.kind == JSON_STRING ? NO_FAULT : STRING_TYPE, "image", 0, false);
    fields->image = node.text;
    fields->image_size = node.size;
}

static predict_fields default_fields(void) {
    return (predict_fields){
        .max_keypoints = 1024, .keypoint_threshold = 0.005, .nms_radius = 4, .return_descriptors = true};
}

/* The fields that all routes have, and the end of the list of errors. */
static int finish(field_check *check, predict_fields *fields) {
    check_integer(check, "max_keypoints", false, -1, MAX_KEYPOINTS, &fields->max_keypoints);
    check_threshold(check, "keypoint_threshold", &fields->keypoint_threshold);
    check_integer(check, "nms_radius", false, 0, MAX_NMS_RADIUS, &fields->nms_radius);
    check_boolean(check, "return_descriptors", &fields->return_descriptors);
    if (check->errors.count > 0)
        error_list_finish(&check->errors);
    return check->no_memory || check->errors.buffer->failed ? 500 : check->errors.count > 0 ? 400 : 0;
}

int fields_from_query(const query_string *query, bool is_plane, predict_fields *fields, text_buffer *error) {
    *fields = default_fields();
    field_check check = {.query = query, .errors = {.buffer = error}};
    if (is_plane) {
        check_integer(&check, "height", true, 1, MAX_SIDE, &fields->height);
        check_integer(&check, "width", true, 1, MAX_SIDE, &fields->width);
    }
    return finish(&check, fields);
}

/* A body that has no fields. `field` as in error_list_open(); what is shown as received is the document, or
 * `input_text` if that is NULL; `reason` goes to "ctx", NULL if there is none to add. */
static int refuse_body(text_buffer *error, fault_kind fault, const char *field, json_document *document,
                       const char *input_text, const char *reason) {
    error_list list = {.buffer = error};
    error_list_open(&list, fault_texts[fault].type, "body", field, fault_texts[fault].message);
    if (document != NULL)
        write_received(document, document->nodes, error);
    else
        text_buffer_add_text(error, input_text);
    if (reason != NULL)
        error_list_close_reason(&list, reason);
    else
        error_list_close(&list, NULL);
    error_list_finish(&list);
    return error->failed ? 500 : 400;
}

static int refuse_json(const json_document *document, json_result result, text_buffer *error) {
    char position[24];
    switch (result) {
    case JSON_INVALID:
        snprintf(position, sizeof position, "%zu", document->position);
        return refuse_body(error, JSON_FAULT, position, NULL, "{}", document->error);
    case JSON_NO_MEMORY:
        error_body_text(error, "out of memory");
        return 500;
    case JSON_TOO_MANY:
        error_body_text(error, "There was an error parsing the body: more than %d JSON values", JSON_NODES);
        return 400;
    default:
        error_body_text(error, "There was an error parsing the body");
        return 400;
    }
}

int fields_from_body(json_document *document, char *body, size_t size, bool is_json, predict_fields *fields,
                     text_buffer *error) {
    *document = (json_document){0};
    *fields = default_fields();
    if (size == 0)
        return refuse_body(error, MISSING, NULL, NULL, "null", NULL);
    /* The old server failed with 500 here, because it could not show the bytes it had received. */
    if (!is_json)
        return refuse_body(error, MODEL_ATTRIBUTES_TYPE, NULL, NULL, "null",
                           "the body must be JSON, sent with Content-Type: application/json");
    const json_result result = json_document_read(document, body, size);
    if (result != JSON_READ)
        return refuse_json(document, result, error);
    if (document->nodes[0].kind == JSON_NULL)
        return refuse_body(error, MISSING, NULL, NULL, "null", NULL);
    if (document->nodes[0].kind != JSON_OBJECT)
        return refuse_body(error, MODEL_ATTRIBUTES_TYPE, NULL, document, NULL, NULL);
    field_check check = {.document = document, .errors = {.buffer = error}};
    check_image(&check, fields);
    return finish(&check, fields);
}

bool content_type_is_json(const char *content_type) {
    if (content_type == NULL)
        return false;
    content_type += strspn(content_type, " \t");
    size_t size = strcspn(content_type, ";");
    while (size > 0 && (content_type[size - 1] == ' ' || content_type[size - 1] == '\t'))
        size--;
    static const char application[] = "application/";
    const size_t prefix = sizeof application - 1;
    if (size < prefix || strncasecmp(content_type, application, prefix) != 0 ||
        memchr(content_type + prefix, '/', size - prefix) != NULL)
        return false;
    if (size == prefix + 4 && strncasecmp(content_type + prefix, "json", 4) == 0)
        return true;
    return size >= prefix + 5 && strncasecmp(content_type + size - 5, "+json", 5) == 0;
}
