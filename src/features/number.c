/* SPDX-License-Identifier: Apache-2.0 */
#include "features/number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t copy(char *text, const char *from) {
    const size_t size = strlen(from);
    memcpy(text, from, size);
    return size;
}

/* Digits of a whole number, most significant first. */
static size_t write_digits(uint64_t value, char *digits) {
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < count; i++)
        digits[i] = reversed[count - 1 - i];
    return count;
}

size_t lns_number_integer(int64_t value, char *text) {
    if (value >= 0)
        return write_digits((uint64_t)value, text);
    text[0] = '-';
    return 1 + write_digits(0 - (uint64_t)value, text + 1);
}

/* Text of 0.d1d2d3... x 10^point, without sign; `digits` has no zero at either end. */
static size_t layout(const char *digits, size_t count, int point, char *text) {
    char *end = text;
    if (point < -4 || point > 16) {
        *end++ = digits[0];
        if (count > 1) {
            *end++ = '.';
            memcpy(end, digits + 1, count - 1);
            end += count - 1;
        }
        *end++ = 'e';
        const int exponent = point - 1;
        *end++ = exponent < 0 ? '-' : '+';
        end += write_digits((uint64_t)abs(exponent), end);
        return (size_t)(end - text);
    }
    const size_t whole = point > 0 ? (size_t)point : 0;
    if (whole == 0) {
        *end++ = '0';
    } else {
        const size_t shown = whole < count ? whole : count;
        memcpy(end, digits, shown);
        memset(end + shown, '0', whole - shown);
        end += whole;
        digits += shown;
        count -= shown;
    }
    *end++ = '.';
    for (int zeros = point; zeros < 0; zeros++)
        *end++ = '0';
    if (count == 0)
        *end++ = '0';
    memcpy(end, digits, count);
    return (size_t)(end + count - text);
}

/* Digits of the shortest decimal that reads back as `value` > 0, and the place of its point. */
static size_t shortest_digits(double value, char *digits, int *point) {
    char text[40];
    /* Two decimals of at most DBL_DIG digits are never the same normal number, so when DBL_DIG digits read back, they
     * are the shortest ones followed by zeros. */
    int precision = value < DBL_MIN ? 1 : DBL_DIG;
    for (;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, value);
        if (precision >= DBL_DECIMAL_DIG || strtod(text, NULL) == value)
            break;
    }
    /* The locale decides about the point, so only digits are taken. */
    size_t count = 0;
    const char *c = text;
    for (; *c != 'e'; c++) {
        if (*c >= '0' && *c <= '9')
            digits[count++] = *c;
    }
    *point = atoi(c + 1) + 1;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

size_t lns_number_shortest(double value, char *text) {
    if (isnan(value))
        return copy(text, "NaN");
    size_t sign = 0;
    if (signbit(value))
        text[sign++] = '-';
    value = fabs(value);
    if (isinf(value))
        return sign + copy(text + sign, "Infinity");
    if (value == 0)
        return sign + copy(text + sign, "0.0");
    char digits[DBL_DECIMAL_DIG + 1];
    int point = 0;
    const size_t count = shortest_digits(value, digits, &point);
    return sign + layout(digits, count, point, text + sign);
}

static const uint32_t powers[LNS_NUMBER_DECIMALS + 1] = {1, 10, 100, 1000, 10000, 100000, 1000000};

/* value x 10^decimals rounded to a whole number, ties to even, in exact arithmetic; 0 when the numbers are too large
 * for it. */
static int scale_exactly(double value, int decimals, uint64_t *rounded) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int biased = (int)(bits >> 52);
    if (biased == 0) {
        *rounded = 0;
        return bits == 0; /* subnormal numbers are left to printf */
    }
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int exponent = biased - 1075;
    const int zeros = __builtin_ctzll(mantissa);
    mantissa >>= zeros;
    exponent += zeros;
    uint64_t product;
    if (__builtin_mul_overflow(mantissa, (uint64_t)powers[decimals], &product))
        return 0;
    if (exponent >= 0) {
        if (exponent > 63 || product > (UINT64_MAX >> exponent))
            return 0;
        *rounded = product << exponent;
        return 1;
    }
    const int shift = -exponent;
    if (shift > 64) {
        *rounded = 0; /* below 2^64 x 2^-65 */
        return 1;
    }
    const uint64_t whole = shift == 64 ? 0 : product >> shift;
    const uint64_t rest = shift == 64 ? product : product & ((UINT64_C(1) << shift) - 1);
    const uint64_t half = UINT64_C(1) << (shift - 1);
    *rounded = whole + (rest > half || (rest == half && (whole & 1) != 0));
    return 1;
}

/* As scale_exactly(), for what is clear without: the product is off by no more than 2^-23, so that it rounds as the exact
 * one does unless that is as close to the middle between two numbers. */
static int scale_quickly(double value, int decimals, uint64_t *rounded) {
    const double product = value * powers[decimals];
    if (!(product < 0x1p30))
        return 0;
    const uint32_t nearest = (uint32_t)(product + 0.5);
    *rounded = nearest;
    return fabs(fabs(product - nearest) - 0.5) > 0x1p-20;
}

/* `rounded` / 10^decimals, at least 10^-4, with as many decimals as it needs but one; decimals > 0. */
static size_t write_decimal(uint64_t rounded, int decimals, char *text) {
    char *end = text + write_digits(rounded / powers[decimals], text);
    uint32_t rest = (uint32_t)(rounded % powers[decimals]);
    *end++ = '.';
    for (int i = decimals; i-- > 0; rest /= 10)
        end[i] = (char)('0' + rest % 10);
    while (decimals > 1 && end[decimals - 1] == '0')
        decimals--;
    return (size_t)(end + decimals - text);
}

/* The largest number of DBL_DIG digits. */
#define EXACT_LIMIT UINT64_C(999999999999999)

size_t lns_number_rounded(double value, int decimals, char *text) {
    const double size = fabs(value);
    uint64_t rounded = 0;
    if (!scale_quickly(size, decimals, &rounded) &&
        (!isfinite(value) || !scale_exactly(size, decimals, &rounded) || rounded > EXACT_LIMIT)) {
        if (!isfinite(value) || size >= 4503599627370496.0) /* 2^52: a whole number already */
            return lns_number_shortest(value, text);
        char decimal[40];
        snprintf(decimal, sizeof decimal, "%.*f", decimals, value);
        return lns_number_shortest(strtod(decimal, NULL), text);
    }
    /* At most DBL_DIG digits: the shortest text of the nearest double is these digits themselves. */
    size_t sign = 0;
    if (signbit(value))
        text[sign++] = '-';
    if (rounded == 0)
        return sign + copy(text + sign, "0.0");
    if (decimals > 0 && rounded >= powers[decimals] / 10000)
        return sign + write_decimal(rounded, decimals, text + sign);
    char digits[20];
    size_t count = write_digits(rounded, digits);
    const int point = (int)count - decimals;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return sign + layout(digits, count, point, text + sign);
}
