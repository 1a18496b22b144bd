/* SPDX-License-Identifier: Apache-2.0 */
/* More than a million numbers: what integer arithmetic makes of them must be what the C library makes of them. The
 * texts themselves are compared with Python's in tests/features/test_json.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>

#include "features/number.h"

static uint64_t seed = 88172645463325252U;

static uint64_t random_bits(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static double random_double(void) {
    return (double)(random_bits() >> 11) / 9007199254740992.0;
}

static void check(double value, int decimals) {
    char decimal[400];
    char wanted[LNS_NUMBER_SIZE + 1];
    char got[LNS_NUMBER_SIZE + 1];
    snprintf(decimal, sizeof decimal, "%.*f", decimals, value);
    wanted[lns_number_shortest(strtod(decimal, NULL), wanted)] = '\0';
    got[lns_number_rounded(value, decimals, got)] = '\0';
    if (strcmp(got, wanted) != 0)
        fail_msg("%a with %d decimals is '%s', should be '%s'", value, decimals, got, wanted);
}

static void rounding_equals_printf(void **state) {
    (void)state;
    for (int i = 0; i < 300000; i++) {
        const double x = (double)(random_bits() % 640);
        check(x * ((double)(1 + random_bits() % 20000) / 640), 3);
        check((double)(float)random_double(), 6);
        check(random_double() * 1e-5, 6);
        check(ldexp((double)(random_bits() >> 11), -(int)(random_bits() % 120)), (int)(random_bits() % 7));
    }
}

/* Odd multiples of 2^-(d + 1) are 5^(d + 1) x odd / 10^(d + 1): exactly in the middle between two decimals. */
static void ties_go_to_even(void **state) {
    (void)state;
    for (int decimals = 0; decimals <= LNS_NUMBER_DECIMALS; decimals++) {
        for (int i = 1; i < 20000; i += 2) {
            const double tie = ldexp(i, -(decimals + 1));
            check(tie, decimals);
            check(-tie, decimals);
            check(nextafter(tie, 1e9), decimals);
            check(nextafter(tie, -1e9), decimals);
        }
    }
}

static void all_bit_patterns(void **state) {
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = random_bits();
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char text[LNS_NUMBER_SIZE + 1];
        const size_t length = lns_number_shortest(value, text);
        assert_true(length <= LNS_NUMBER_SIZE);
        text[length] = '\0';
        assert_true(strtod(text, NULL) == value);
        check(value, (int)(bits % 7));
    }
}

static void comma_locales_change_nothing(void **state) {
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL && setlocale(LC_NUMERIC, "fr_FR.UTF-8") == NULL) {
        print_message("SKIP: no locale with a decimal comma is installed\n");
        return;
    }
    char text[LNS_NUMBER_SIZE + 1];
    text[lns_number_shortest(1.0 / 3, text)] = '\0';
    assert_string_equal(text, "0.3333333333333333");
    text[lns_number_rounded(4398046511104.1234, 6, text)] = '\0';
    assert_string_equal(text, "4398046511104.123");
    setlocale(LC_NUMERIC, "C");
}

static void integers(void **state) {
    (void)state;
    static const int64_t values[] = {0, 1, -1, 10, 1024, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char wanted[LNS_NUMBER_SIZE];
        char got[LNS_NUMBER_SIZE + 1];
        snprintf(wanted, sizeof wanted, "%lld", (long long)values[i]);
        got[lns_number_integer(values[i], got)] = '\0';
        assert_string_equal(got, wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_equals_printf),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(all_bit_patterns),
        cmocka_unit_test(comma_locales_change_nothing),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests_name("features numbers", tests, NULL, NULL);
}
