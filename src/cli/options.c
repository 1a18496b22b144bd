/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: strict values, errors that name the option, the value and the range. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *text) {
    while (is_digit(*text))
        text++;
    return text;
}

bool lns_cli_parse_integer(const char *text, int64_t *value) {
    const char *digits = text + (*text == '-' || *text == '+');
    if (!is_digit(*digits) || *skip_digits(digits) != '\0')
        return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

/* Checked by hand first: strtod also takes blanks, hexadecimal, "inf" and "nan". The program never calls setlocale(),
 * so the point is a point. */
bool lns_cli_parse_real(const char *text, double *value) {
    const char *start = text + (*text == '-' || *text == '+');
    const char *end = skip_digits(start);
    size_t digits = (size_t)(end - start);
    if (*end == '.') {
        const char *fraction = end + 1;
        end = skip_digits(fraction);
        digits += (size_t)(end - fraction);
    }
    if (digits == 0)
        return false;
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
        end = skip_digits(exponent);
        if (end == exponent)
            return false;
    }
    if (*end != '\0')
        return false;
    *value = strtod(text, NULL);
    return isfinite(*value);
}

/* ---- Slips of the pen ------------------------------------------------------------------------------------------- */

#define WORD_LIMIT 40

static int least(int a, int b, int c) {
    const int least_ab = a < b ? a : b;
    return least_ab < c ? least_ab : c;
}

/* Levenshtein distance, with a swap of neighbours as one step. */
static int distance(const char *a, size_t a_size, const char *b, size_t b_size) {
    int rows[3][WORD_LIMIT + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = least(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        int *const oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[b_size];
}

/* How far a word is from what was typed: a beginning of the word counts as near. */
static int badness(const char *text, size_t text_size, const char *word, size_t word_size) {
    if (text_size >= 3 && text_size < word_size && memcmp(text, word, text_size) == 0)
        return 1;
    return distance(text, text_size, word, word_size);
}

bool lns_cli_suggest(const char *text, const char *words, char *found, size_t size) {
    const size_t text_size = strlen(text);
    if (text_size == 0 || text_size > WORD_LIMIT)
        return false;
    int best = (int)(text_size / 3) + 2;
    bool any = false;
    for (const char *word = words; *word != '\0';) {
        const size_t word_size = strcspn(word, " ");
        if (word_size <= WORD_LIMIT && word_size < size) {
            const int far = badness(text, text_size, word, word_size);
            if (far < best && far < (int)word_size) {
                best = far;
                memcpy(found, word, word_size);
                found[word_size] = '\0';
                any = true;
            }
        }
        word += word_size;
        word += strspn(word, " ");
    }
    return any;
}

/* ---- Options ---------------------------------------------------------------------------------------------------- */

/* A whole number is printed whole, however large. */
static void print_limit(char *text, size_t size, double limit) {
    snprintf(text, size, floor(limit) == limit ? "%.0f" : "%g", limit);
}

static void report_number(const lns_cli_option *option, const char *shown, const char *value) {
    char low[32];
    char high[32];
    print_limit(low, sizeof low, option->low);
    print_limit(high, sizeof high, option->high);
    lns_cli_error("%s: '%s' is not %s %s%s to %s", shown, value,
                  option->kind == LNS_CLI_INTEGER ? "a whole number from" : "a number from",
                  option->open ? "above " : "", low, high);
}

static bool set_number(const lns_cli_option *option, const char *shown, const char *value) {
    int64_t whole = 0;
    double real = 0;
    bool good;
    if (option->kind == LNS_CLI_INTEGER) {
        good = lns_cli_parse_integer(value, &whole);
        real = (double)whole;
    } else {
        good = lns_cli_parse_real(value, &real);
    }
    if (!good || real < option->low || real > option->high || (option->open && real <= option->low)) {
        report_number(option, shown, value);
        return false;
    }
    if (option->kind == LNS_CLI_INTEGER)
        *(int64_t *)option->target = whole;
    else
        *(double *)option->target = real;
    return true;
}

static bool set_choice(const lns_cli_option *option, const char *shown, const char *value) {
    const size_t size = strlen(value);
    int place = 0;
    for (const char *word = option->choices; *word != '\0'; place++) {
        const size_t word_size = strcspn(word, " ");
        if (word_size == size && memcmp(word, value, size) == 0) {
            *(int *)option->target = place;
            return true;
        }
        word += word_size;
        word += strspn(word, " ");
    }
    char listed[128] = "";
    size_t used = 0;
    for (const char *c = option->choices; *c != '\0' && used + 3 < sizeof listed; c++) {
        if (*c == ' ')
            listed[used++] = ',';
        listed[used++] = *c;
    }
    listed[used] = '\0';
    lns_cli_error("%s: '%s' is not one of: %s", shown, value, listed);
    return false;
}

static bool set_option(const lns_cli_option *option, const char *shown, const char *value) {
    switch (option->kind) {
    case LNS_CLI_INTEGER:
    case LNS_CLI_REAL:
        return set_number(option, shown, value);
    case LNS_CLI_CHOICE:
        return set_choice(option, shown, value);
    case LNS_CLI_TEXT:
        if (value[0] == '\0') {
            lns_cli_error("%s: the value is empty", shown);
            return false;
        }
        *(const char **)option->target = value;
        return true;
    case LNS_CLI_FLAG:
    case LNS_CLI_END:
        break;
    }
    *(int *)option->target = (int)option->low;
    return true;
}

static const lns_cli_option *find_name(const lns_cli_option *options, const char *name, size_t size) {
    for (; options->kind != LNS_CLI_END; options++) {
        if (strlen(options->name) == size && memcmp(options->name, name, size) == 0)
            return options;
    }
    return NULL;
}

static const lns_cli_option *find_letter(const lns_cli_option *options, char letter) {
    for (; options->kind != LNS_CLI_END; options++) {
        if (options->letter == letter)
            return options;
    }
    return NULL;
}

static void report_unknown(const char *command, const lns_cli_option *options, const char *argument) {
    char words[512] = "help";
    char near[WORD_LIMIT + 1];
    char typed[WORD_LIMIT + 2];
    for (; options->kind != LNS_CLI_END; options++) {
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, " %s", options->name);
    }
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument + 2, "="), argument[1] == '-' ? argument + 2 : "");
    if (lns_cli_suggest(typed, words, near, sizeof near))
        lns_cli_error("%s: unknown option '%s'; did you mean --%s?", command, argument, near);
    else
        lns_cli_error("%s: unknown option '%s'; see `lensing help %s`", command, argument, command);
}

/* Takes the option at argv[*at], and its value behind it. */
static bool take_option(int argc, char **argv, int *at, const lns_cli_option *options) {
    const char *argument = argv[*at];
    const bool is_long = argument[1] == '-';
    const size_t name_size = is_long ? strcspn(argument + 2, "=") : 1;
    const lns_cli_option *option =
        is_long ? find_name(options, argument + 2, name_size) : find_letter(options, argument[1]);
    const char *attached = is_long ? argument + 2 + name_size : argument + 2;
    if (option == NULL || (!is_long && option->kind == LNS_CLI_FLAG && *attached != '\0')) {
        report_unknown(argv[0], options, argument);
        return false;
    }
    char shown[WORD_LIMIT + 3];
    if (is_long)
        snprintf(shown, sizeof shown, "--%s", option->name);
    else
        snprintf(shown, sizeof shown, "-%c", option->letter);
    if (option->kind == LNS_CLI_FLAG) {
        if (*attached != '\0') {
            lns_cli_error("%s takes no value, but got '%s'", shown, attached + 1);
            return false;
        }
        return set_option(option, shown, "");
    }
    if (*attached != '\0')
        return set_option(option, shown, is_long ? attached + 1 : attached);
    if (*at + 1 >= argc) {
        lns_cli_error("%s needs a value; see `lensing help %s`", shown, argv[0]);
        return false;
    }
    *at += 1;
    return set_option(option, shown, argv[*at]);
}

bool lns_cli_parse(int argc, char **argv, const lns_cli_option *options, const char *help, int *count, int *code) {
    *count = 0;
    bool only_arguments = false;
    /* Help first: it is what a person wants who also got something else wrong. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *code = lns_cli_print(help);
            return false;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[1 + (*count)++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
        } else if (!take_option(argc, argv, &i, options)) {
            *code = LNS_CLI_USAGE;
            return false;
        }
    }
    return true;
}
