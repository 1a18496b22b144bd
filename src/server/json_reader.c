/* SPDX-License-Identifier: Apache-2.0 */
#include "json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "scan.h"

typedef struct json_reader {
    json_document *document;
    const char *begin;
    char *at;
    char *end;
    /* Characters that replaced escapes have taken away before `at`. */
    size_t removed;
} json_reader;

/* --- Encodings ------------------------------------------------------------------------------------------------------
 */

typedef enum encoding { UTF_8, UTF_16_LITTLE, UTF_16_BIG, UTF_32_LITTLE, UTF_32_BIG } encoding;

static bool starts_with(const uint8_t *body, size_t size, const char *mark, size_t mark_size) {
    return size >= mark_size && memcmp(body, mark, mark_size) == 0;
}

/* By the byte order mark, whose size goes to `*mark`, else by where the zeros are in the first characters, which are
 * ASCII in JSON. The rules of json.detect_encoding(). */
static encoding detect_encoding(const uint8_t *body, size_t size, size_t *mark) {
    *mark = 4;
    if (starts_with(body, size, "\0\0\xFE\xFF", 4))
        return UTF_32_BIG;
    if (starts_with(body, size, "\xFF\xFE\0\0", 4))
        return UTF_32_LITTLE;
    *mark = 2;
    if (starts_with(body, size, "\xFE\xFF", 2))
        return UTF_16_BIG;
    if (starts_with(body, size, "\xFF\xFE", 2))
        return UTF_16_LITTLE;
    *mark = 3;
    if (starts_with(body, size, "\xEF\xBB\xBF", 3))
        return UTF_8;
    *mark = 0;
    if (size >= 4 && body[0] == 0)
        return body[1] != 0 ? UTF_16_BIG : UTF_32_BIG;
    if (size >= 4 && body[1] == 0)
        return body[2] != 0 || body[3] != 0 ? UTF_16_LITTLE : UTF_32_LITTLE;
    if (size == 2 && body[0] == 0)
        return UTF_16_BIG;
    if (size == 2 && body[1] == 0)
        return UTF_16_LITTLE;
    return UTF_8;
}

static bool is_continuation(uint8_t byte) {
    return (byte & 0xC0) == 0x80;
}

/* Length of the character that begins at `at`, surrogates included; 0 if it is not one. */
static size_t character_size(const uint8_t *at, size_t rest) {
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xC2 || at[0] > 0xF4 || rest < 2 || !is_continuation(at[1]))
        return 0;
    if (at[0] < 0xE0)
        return 2;
    if (rest < 3 || !is_continuation(at[2]) || (at[0] == 0xE0 && at[1] < 0xA0))
        return 0;
    if (at[0] < 0xF0)
        return 3;
    if (rest < 4 || !is_continuation(at[3]) || (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return 4;
}

static bool is_utf8(const char *at, const char *end) {
    while ((at = scan_ascii(at, end)) < end) {
        const size_t size = character_size((const uint8_t *)at, (size_t)(end - at));
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

static char *put_character(char *out, uint32_t character) {
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    if (character < 0x800) {
        *out++ = (char)(0xC0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *out++ = (char)(0xE0 | character >> 12);
        } else {
            *out++ = (char)(0xF0 | character >> 18);
            *out++ = (char)(0x80 | (character >> 12 & 63));
        }
        *out++ = (char)(0x80 | (character >> 6 & 63));
    }
    *out++ = (char)(0x80 | (character & 63));
    return out;
}

static bool is_high_surrogate(uint32_t unit) {
    return unit >= 0xD800 && unit < 0xDC00;
}

static bool is_low_surrogate(uint32_t unit) {
    return unit >= 0xDC00 && unit < 0xE000;
}

static uint32_t join_surrogates(uint32_t high, uint32_t low) {
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static uint32_t unit_16(const uint8_t *at, encoding from) {
    return from == UTF_16_BIG ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static uint32_t unit_32(const uint8_t *at, encoding from) {
    return from == UTF_32_BIG ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
                              : (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* Writes the body as UTF-8 to `out`; the end of it, NULL if it is no such text. */
static char *convert(const uint8_t *body, size_t size, encoding from, char *out) {
    const size_t unit_size = from == UTF_16_LITTLE || from == UTF_16_BIG ? 2 : 4;
    if (size % unit_size != 0)
        return NULL;
    for (size_t i = 0; i < size; i += unit_size) {
        uint32_t character = unit_size == 2 ? unit_16(body + i, from) : unit_32(body + i, from);
        if (character > 0x10FFFF)
            return NULL;
        if (unit_size == 2 && is_high_surrogate(character) && i + 4 <= size) {
            const uint32_t low = unit_16(body + i + 2, from);
            if (is_low_surrogate(low)) {
                character = join_surrogates(character, low);
                i += 2;
            }
        }
        out = put_character(out, character);
    }
    return out;
}

/* Sets the reader to the text as UTF-8. */
static json_result decode(json_reader *reader, char *body, size_t size) {
    size_t mark;
    const encoding from = detect_encoding((const uint8_t *)body, size, &mark);
    body += mark;
    size -= mark;
    if (from == UTF_8) {
        reader->at = body;
        reader->end = body + size;
        reader->begin = body;
        return is_utf8(body, reader->end) ? JSON_READ : JSON_UNREADABLE;
    }
    /* Two bytes of UTF-16 become at most three, four of UTF-32 at most four. */
    char *text = size > SIZE_MAX / 2 ? NULL : malloc(size + size / 2 + 1);
    if (text == NULL)
        return JSON_NO_MEMORY;
    reader->document->converted = text;
    reader->begin = reader->at = text;
    reader->end = convert((const uint8_t *)body, size, from, text);
    return reader->end != NULL ? JSON_READ : JSON_UNREADABLE;
}

/* --- Syntax ---------------------------------------------------------------------------------------------------------
 */

static json_result fail_at(json_reader *reader, const char *error, const char *at, size_t removed) {
    size_t position = removed;
    for (const char *byte = reader->begin; byte < at; byte++)
        position += !is_continuation((uint8_t)*byte);
    reader->document->error = error;
    reader->document->position = position;
    return JSON_INVALID;
}

static json_result fail(json_reader *reader, const char *error) {
    return fail_at(reader, error, reader->at, reader->removed);
}

static json_node *add_node(json_reader *reader, json_kind kind, char *text, size_t size, json_result *result) {
    json_document *document = reader->document;
    if (document->count == JSON_NODES) {
        *result = JSON_TOO_MANY;
        return NULL;
    }
    if (document->count == document->capacity) {
        const uint32_t capacity = document->capacity > 0 ? 4 * document->capacity : 64;
        json_node *nodes = realloc(document->nodes, capacity * sizeof *nodes);
        if (nodes == NULL) {
            *result = JSON_NO_MEMORY;
            return NULL;
        }
        document->nodes = nodes;
        document->capacity = capacity;
    }
    json_node *node = &document->nodes[document->count++];
    *node = (json_node){.text = text, .size = size, .end = document->count, .kind = (uint8_t)kind};
    *result = JSON_READ;
    return node;
}

static void skip_blanks(json_reader *reader) {
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r'))
        reader->at++;
}

static bool next_is(const json_reader *reader, char byte) {
    return reader->at < reader->end && *reader->at == byte;
}

/* Four hexadecimal digits with something behind them, at the least the quote. */
static bool read_hexadecimal(const char *at, const char *end, uint32_t *value) {
    *value = 0;
    if (end - at <= 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];
        if (c >= '0' && c <= '9')
            *value = *value << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *value = *value << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* What is wrong with the escape at reader->at begins at its u. */
static const char *fail_at_u(json_reader *reader) {
    reader->removed += 1;
    return "Invalid \\uXXXX escape";
}

/* Replaces the escape at reader->at, a backslash, by a character at `*out`. */
static const char *read_escape(json_reader *reader, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char letter = reader->at[1];
    if (letter != 'u') {
        const char *found = letter != '\0' ? strchr(from, letter) : NULL;
        if (found == NULL)
            return "Invalid \\escape";
        *(*out)++ = to[found - from];
        reader->at += 2;
        reader->removed += 1;
        return NULL;
    }
    uint32_t character, low;
    if (!read_hexadecimal(reader->at + 2, reader->end, &character))
        return fail_at_u(reader);
    reader->at += 6;
    reader->removed += 5;
    if (is_high_surrogate(character) && reader->end - reader->at > 6 && reader->at[0] == '\\' && reader->at[1] == 'u') {
        if (!read_hexadecimal(reader->at + 2, reader->end, &low)) {
            *out = put_character(*out, character);
            return fail_at_u(reader);
        }
        if (is_low_surrogate(low)) {
            character = join_surrogates(character, low);
            reader->at += 6;
            reader->removed += 6;
        }
    }
    *out = put_character(*out, character);
    return NULL;
}

/* Reads a string or a name; reader->at is its quote. */
static json_result read_string(json_reader *reader, json_kind kind) {
    const char *quote = reader->at++;
    const size_t removed_before = reader->removed;
    char *text = reader->at, *out = text;
    const char *error = NULL;
    for (;;) {
        char *run = reader->at;
        reader->at += scan_string(run, reader->end, false) - run;
        const size_t length = (size_t)(reader->at - run);
        if (out != run)
            memmove(out, run, length);
        out += length;
        if (reader->at == reader->end || next_is(reader, '"'))
            break;
        if (*reader->at != '\\')
            error = "Invalid control character at";
        else if (reader->at + 1 == reader->end)
            reader->at = reader->end;
        else
            error = read_escape(reader, &out);
        if (error != NULL || reader->at == reader->end)
            break;
    }
    /* What a replaced escape leaves over becomes bytes that no count of characters counts. */
    memset(out, 0x80, (size_t)(reader->at - out));
    if (error != NULL)
        return fail(reader, error);
    if (reader->at == reader->end)
        return fail_at(reader, "Unterminated string starting at", quote, removed_before);
    reader->at++;
    json_result result;
    add_node(reader, kind, text, (size_t)(out - text), &result);
    return result;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char *skip_digits(char *at, const char *end) {
    while (at < end && is_digit(*at))
        at++;
    return at;
}

static json_result read_number(json_reader *reader) {
    char *begin = reader->at, *at = begin, *end = reader->end;
    if (*at == '-')
        at++;
    char *digits = at;
    if (at == end || !is_digit(*at))
        return fail(reader, "Expecting value");
    at = *at == '0' ? at + 1 : skip_digits(at, end);
    const size_t digit_count = (size_t)(at - digits);
    json_kind kind = JSON_INTEGER;
    if (end - at >= 2 && at[0] == '.' && is_digit(at[1])) {
        at = skip_digits(at + 1, end);
        kind = JSON_REAL;
    }
    if (at < end && (*at | 32) == 'e') {
        char *exponent = at + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-'))
            exponent++;
        if (exponent < end && is_digit(*exponent)) {
            at = skip_digits(exponent, end);
            kind = JSON_REAL;
        }
    }
    if (kind == JSON_INTEGER && digit_count > JSON_INTEGER_DIGITS)
        return JSON_UNREADABLE;
    reader->at = at;
    json_result result;
    add_node(reader, kind, begin, (size_t)(at - begin), &result);
    return result;
}

/* One of the words that are values, or a number. */
static json_result read_word(json_reader *reader) {
    static const struct {
        const char *text;
        json_kind kind;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE},     {"false", JSON_FALSE},
                 {"NaN", JSON_REAL},  {"Infinity", JSON_REAL}, {"-Infinity", JSON_REAL}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t size = strlen(words[i].text);
        if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, words[i].text, size) != 0)
            continue;
        reader->at += size;
        json_result result;
        add_node(reader, words[i].kind, reader->at - size, size, &result);
        return result;
    }
    return read_number(reader);
}

static json_result read_name(json_reader *reader) {
    if (!next_is(reader, '"'))
        return fail(reader, "Expecting property name enclosed in double quotes");
    const json_result result = read_string(reader, JSON_NAME);
    if (result != JSON_READ)
        return result;
    skip_blanks(reader);
    if (!next_is(reader, ':'))
        return fail(reader, "Expecting ':' delimiter");
    reader->at++;
    skip_blanks(reader);
    return JSON_READ;
}

/* Arrays and objects not closed yet. */
typedef struct nesting {
    uint32_t nodes[JSON_DEPTH];
    size_t depth;
} nesting;

/* Begins the value at reader->at. `*complete`: it needs no more. */
static json_result begin_value(json_reader *reader, nesting *open, bool *complete) {
    *complete = true;
    if (reader->at == reader->end)
        return fail(reader, "Expecting value");
    const char first = *reader->at;
    if (first == '"')
        return read_string(reader, JSON_STRING);
    if (first != '[' && first != '{')
        return read_word(reader);
    if (open->depth == JSON_DEPTH)
        return JSON_UNREADABLE;
    open->nodes[open->depth++] = reader->document->count;
    reader->at++;
    json_result result;
    add_node(reader, first == '[' ? JSON_ARRAY : JSON_OBJECT, NULL, 0, &result);
    if (result != JSON_READ)
        return result;
    skip_blanks(reader);
    if (next_is(reader, first == '[' ? ']' : '}'))
        return JSON_READ;
    *complete = false;
    return first == '{' ? read_name(reader) : JSON_READ;
}

/* After a value: closes what ends here, until a comma announces another value or all is closed. */
static json_result end_values(json_reader *reader, nesting *open) {
    while (open->depth > 0) {
        json_node *container = &reader->document->nodes[open->nodes[open->depth - 1]];
        const bool is_object = container->kind == JSON_OBJECT;
        skip_blanks(reader);
        if (next_is(reader, is_object ? '}' : ']')) {
            reader->at++;
            container->end = reader->document->count;
            open->depth--;
            continue;
        }
        if (!next_is(reader, ','))
            return fail(reader, "Expecting ',' delimiter");
        reader->at++;
        skip_blanks(reader);
        return is_object ? read_name(reader) : JSON_READ;
    }
    return JSON_READ;
}

json_result json_document_read(json_document *document, char *body, size_t size) {
    *document = (json_document){0};
    json_reader reader = {.document = document};
    nesting open;
    open.depth = 0;
    json_result result = decode(&reader, body, size);
    if (result == JSON_READ)
        skip_blanks(&reader);
    bool complete = false;
    while (result == JSON_READ && (document->count == 0 || open.depth > 0)) {
        result = begin_value(&reader, &open, &complete);
        if (result == JSON_READ && complete)
            result = end_values(&reader, &open);
    }
    if (result != JSON_READ)
        return result;
    skip_blanks(&reader);
    return reader.at == reader.end ? JSON_READ : fail(&reader, "Extra data");
}

void json_document_free(json_document *document) {
    free(document->nodes);
    free(document->converted);
    *document = (json_document){0};
}

const json_node *json_find(const json_document *document, const json_node *object, const char *name) {
    const size_t size = strlen(name);
    const json_node *found = NULL;
    const json_node *end = document->nodes + object->end;
    for (const json_node *member = object + 1; member < end; member = document->nodes + member[1].end) {
        if (member->size == size && memcmp(member->text, name, size) == 0)
            found = member + 1;
    }
    return found;
}
