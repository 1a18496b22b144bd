/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"
#include "scan.h"

bool json_number(const char *text, size_t size, double *value) {
    char small[64];
    char *copy = size < sizeof small ? small : malloc(size + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    *value = strtod(copy, NULL); /* the program never leaves the "C" locale */
    if (copy != small)
        free(copy);
    return true;
}

static void write_escape(text_buffer *buffer, uint32_t unit) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    char text[8];
    const char *found = unit < 0x80 && unit != 0 ? strchr(from, (int)unit) : NULL;
    const int size = found != NULL ? snprintf(text, sizeof text, "\\%c", to[found - from])
                                   : snprintf(text, sizeof text, "\\u%04x", (unsigned)unit & 0xFFFF);
    text_buffer_add(buffer, text, (size_t)size);
}

void json_write_string(text_buffer *buffer, const char *text, size_t size) {
    const char *end = text + size;
    text_buffer_add(buffer, "\"", 1);
    while (text < end) {
        const char *run = text;
        text = scan_string(text, end, true);
        text_buffer_add(buffer, run, (size_t)(text - run));
        if (text == end)
            break;
        const uint8_t first = (uint8_t)*text;
        if (first != 0xED) {
            write_escape(buffer, first);
            text += 1;
        } else if (end - text >= 3 && (uint8_t)text[1] >= 0xA0) {
            write_escape(buffer, 0xD000u | ((uint32_t)text[1] & 63) << 6 | ((uint32_t)text[2] & 63));
            text += 3;
        } else {
            text_buffer_add(buffer, text++, 1);
        }
    }
    text_buffer_add(buffer, "\"", 1);
}

/* Shortest digits that read back as the finite `value`, as "d.ddde+xx" without zeros at the end of the digits. */
static void write_shortest(double value, char *text, size_t size) {
    /* Two decimals of at most DBL_DIG digits are never the same normal number: when that many read back, they are the
     * shortest ones, but for zeros behind them. */
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(text, size, "%.*e", digits - 1, value);
    while (digits++ < DBL_DECIMAL_DIG && strtod(text, NULL) != value);
}

/* Like repr() of Python. */
static void write_real(text_buffer *buffer, double value) {
    if (!isfinite(value)) {
        text_buffer_add_text(buffer, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    char text[40], digits[40], shown[80];
    write_shortest(value, text, sizeof text);
    const int exponent = atoi(strchr(text, 'e') + 1);
    int count = 0;
    for (const char *c = text; *c != 'e'; c++) {
        if (*c >= '0' && *c <= '9')
            digits[count++] = *c;
    }
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    if (value == 0)
        snprintf(shown, sizeof shown, "0.0");
    else if (exponent < -4 || exponent >= 16)
        snprintf(shown, sizeof shown, "%c%s%se%+03d", digits[0], count > 1 ? "." : "", digits + 1, exponent);
    else if (exponent < 0)
        snprintf(shown, sizeof shown, "0.%.*s%s", -exponent - 1, "000", digits);
    else if (count <= exponent + 1)
        snprintf(shown, sizeof shown, "%s%.*s.0", digits, exponent + 1 - count, "000000000000000");
    else
        snprintf(shown, sizeof shown, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    text_buffer_add_text(buffer, signbit(value) ? "-" : "");
    text_buffer_add_text(buffer, shown);
}

static void write_scalar(const json_node *node, text_buffer *buffer) {
    double value;
    switch (node->kind) {
    case JSON_STRING:
        json_write_string(buffer, node->text, node->size);
        break;
    case JSON_INTEGER:
        if (node->size == 2 && memcmp(node->text, "-0", 2) == 0)
            text_buffer_add_text(buffer, "0");
        else
            text_buffer_add(buffer, node->text, node->size);
        break;
    case JSON_REAL:
        if (json_number(node->text, node->size, &value))
            write_real(buffer, value);
        else
            buffer->failed = true;
        break;
    default:
        text_buffer_add(buffer, node->text, node->size); /* null, true, false */
    }
}

/* --- Names given twice ----------------------------------------------------------------------------------------------
 */

typedef struct named {
    json_node *name;
    uint32_t hash;
} named;

static uint32_t hash_text(const char *text, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

static int compare_texts(const named *a, const named *b) {
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->name->size != b->name->size)
        return a->name->size < b->name->size ? -1 : 1;
    return a->name->size > 0 ? memcmp(a->name->text, b->name->text, a->name->size) : 0;
}

/* Names of one text come together, in their order. */
static int compare_names(const void *first, const void *second) {
    const named *a = first, *b = second;
    const int texts = compare_texts(a, b);
    return texts != 0 ? texts : a->name < b->name ? -1 : 1;
}

/* Like a Python dictionary: a name keeps its first place and takes its last value. Sorted, not looked up in a table of
 * hashes, so that no choice of names makes it slow. */
static void settle_repeated_names(json_document *document, json_node *object, text_buffer *buffer) {
    json_node *end = document->nodes + object->end;
    size_t count = 0;
    for (json_node *name = object + 1; name < end; name = document->nodes + name[1].end)
        count++;
    if (count < 2)
        return;
    named few[16];
    named *names = count <= sizeof few / sizeof few[0] ? few : malloc(count * sizeof *names);
    if (names == NULL) {
        buffer->failed = true;
        return;
    }
    count = 0;
    for (json_node *name = object + 1; name < end; name = document->nodes + name[1].end)
        names[count++] = (named){name, hash_text(name->text, name->size)};
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (i == first || compare_texts(&names[i], &names[first]) != 0) {
            first = i;
            continue;
        }
        names[i].name->kind = JSON_REPEATED_NAME;
        names[first].name->end = (uint32_t)(names[i].name + 1 - document->nodes);
    }
    if (names != few)
        free(names);
}

/* An array or object being written. */
typedef struct level {
    uint32_t next;
    uint32_t end;
    bool is_object;
    bool started;
} level;

/* The next value of the container, after its comma and its name; NULL when it is at its end. */
static json_node *next_value(json_document *document, level *top, text_buffer *buffer) {
    json_node *nodes = document->nodes;
    while (top->is_object && top->next < top->end && nodes[top->next].kind == JSON_REPEATED_NAME)
        top->next = nodes[top->next + 1].end;
    if (top->next == top->end)
        return NULL;
    text_buffer_add_text(buffer, top->started ? "," : "");
    top->started = true;
    json_node *node = &nodes[top->next];
    if (!top->is_object) {
        top->next = node->end;
        return node;
    }
    json_write_string(buffer, node->text, node->size);
    text_buffer_add(buffer, ":", 1);
    top->next = node[1].end;
    return &nodes[node->end];
}

void json_write_value(json_document *document, const json_node *value, text_buffer *buffer) {
    level levels[JSON_DEPTH];
    size_t depth = 0;
    json_node *node = &document->nodes[value - document->nodes];
    for (;;) {
        if (node->kind == JSON_ARRAY || node->kind == JSON_OBJECT) {
            const bool is_object = node->kind == JSON_OBJECT;
            if (is_object)
                settle_repeated_names(document, node, buffer);
            text_buffer_add_text(buffer, is_object ? "{" : "[");
            levels[depth++] = (level){(uint32_t)(node - document->nodes) + 1, node->end, is_object, false};
        } else {
            write_scalar(node, buffer);
        }
        node = NULL;
        while (depth > 0 && (node = next_value(document, &levels[depth - 1], buffer)) == NULL)
            text_buffer_add_text(buffer, levels[--depth].is_object ? "}" : "]");
        if (node == NULL)
            return;
    }
}
