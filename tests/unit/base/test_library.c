/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of shared libraries, with zlib as the example. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <zlib.h>

#include "base/error.h"
#include "base/library.h"

#define THREADS 8

#if defined(__APPLE__)
#define ZLIB "libz.1.dylib"
#else
#define ZLIB "libz.so.1"
#endif

typedef struct functions {
    __typeof__(zlibVersion) *version;
    __typeof__(crc32) *checksum;
} functions;

static functions table;
static int starts;
static int failing_starts; /* how many more fail */

static const lns_library_symbol symbols[] = {
    {"zlibVersion", offsetof(functions, version), 0},
    {"crc32", offsetof(functions, checksum), 0},
};

static lns_status start(void) {
    starts++;
    assert_non_null(table.version());
    return failing_starts-- > 0 ? lns_fail(LNS_ERROR_SYSTEM, "zlib is tired") : LNS_OK;
}

static lns_library zlib(void) {
    memset(&table, 0, sizeof table);
    starts = failing_starts = 0;
    return (lns_library){
        .need = "tests need zlib",
        .install = "'get zlib'",
        .files = {ZLIB},
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof *symbols,
        .table = &table,
        .start = start,
    };
}

static void loads_once(void **state) {
    (void)state;
    lns_library library = zlib();
    assert_int_equal(lns_library_load(&library), LNS_OK);
    assert_int_equal(lns_library_load(&library), LNS_OK);
    assert_int_equal(starts, 1);
    assert_int_equal(table.checksum(0, (const Bytef *)"123456789", 9), 0xcbf43926); /* check value of CRC-32 */
}

static void takes_the_second_file(void **state) {
    (void)state;
    lns_library library = zlib();
    library.files[0] = "liblensing-none.so.1";
    library.files[1] = ZLIB;
    assert_int_equal(lns_library_load(&library), LNS_OK);
    assert_non_null(table.version());
}

static void absent_file(void **state) {
    (void)state;
    lns_library library = zlib();
    library.files[0] = "liblensing-none.so.1";
    library.files[1] = "liblensing-none.so.2";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lns_library_load(&library), LNS_ERROR_UNSUPPORTED);
        const char *text = lns_error_message();
        const char *const parts[] = {"tests need zlib, which could not be loaded (", "liblensing-none.so.1",
                                     "); install it with 'get zlib'"};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            if (strstr(text, parts[k]) == NULL)
                fail_msg("no '%s' in '%s'", parts[k], text);
        }
    }
    assert_int_equal(starts, 0);
    library.files[0] = ZLIB; /* as if it had been installed */
    assert_int_equal(lns_library_load(&library), LNS_OK);
}

static void absent_function(void **state) {
    (void)state;
    const lns_library_symbol wanted[] = {symbols[0], {"zlib_of_tomorrow", offsetof(functions, checksum), 0}};
    lns_library library = zlib();
    library.symbols = wanted;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lns_library_load(&library), LNS_ERROR_UNSUPPORTED);
        assert_string_equal(
            lns_error_message(),
            "tests need zlib: the one that is installed lacks zlib_of_tomorrow; update it with 'get zlib'");
    }
    assert_int_equal(starts, 0);
}

static void tries_again_after_a_failed_start(void **state) {
    (void)state;
    lns_library library = zlib();
    failing_starts = 1;
    assert_int_equal(lns_library_load(&library), LNS_ERROR_SYSTEM);
    assert_string_equal(lns_error_message(), "zlib is tired");
    assert_int_equal(lns_library_load(&library), LNS_OK);
    assert_int_equal(starts, 2);
}

static atomic_int waiting;

static void *load_and_use(void *library) {
    atomic_fetch_sub(&waiting, 1);
    while (atomic_load(&waiting) > 0) /* all begin at the same moment */
        sched_yield();
    const lns_status status = lns_library_load(library);
    return status == LNS_OK && table.checksum(0, (const Bytef *)"123456789", 9) == 0xcbf43926 ? library : NULL;
}

static void first_use_by_many_threads(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        lns_library library = zlib();
        pthread_t threads[THREADS];
        atomic_store(&waiting, THREADS);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, load_and_use, &library), 0);
        for (int i = 0; i < THREADS; i++) {
            void *result;
            pthread_join(threads[i], &result);
            assert_ptr_equal(result, &library);
        }
        assert_int_equal(starts, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_once),
        cmocka_unit_test(takes_the_second_file),
        cmocka_unit_test(absent_file),
        cmocka_unit_test(absent_function),
        cmocka_unit_test(tries_again_after_a_failed_start),
        cmocka_unit_test(first_use_by_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
