/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <lensing/weights.h>

#include "base/memory.h"
#include "weights/builtin.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"
#define SHA2 "76543210fedcba9876543210fedcba9876543210"
#define MODEL "models--magic-leap-community--superpoint"

#define BUILTIN "some-model-v1"

static char home[256]; /* a new folder for each test; the current folder too */
static int has_builtin;

/* In place of the library's. */
int lns_builtin_weights_find(lns_builtin_weights *builtin) {
    *builtin = (lns_builtin_weights){.name = BUILTIN};
    return has_builtin;
}

/* Good for the next three calls. */
static const char *path_of(const char *relative) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn = (turn + 1) % 4];
    snprintf(path, sizeof paths[0], "%s/%s", home, relative);
    return path;
}

/* Makes a file and the folders above it. */
static void put(const char *relative, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s", path_of(relative));
    for (char *slash = strchr(path + strlen(home) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Both files of a snapshot, in a folder below the home. */
static void put_weights(const char *folder) {
    char path[400];
    snprintf(path, sizeof path, "%s/config.json", folder);
    put(path, "{}");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    put(path, "x");
}

static int set_up(void **state) {
    (void)state;
    static const char *const variables[] = {"HF_HOME",  "HF_HUB_CACHE",        "XDG_CACHE_HOME",
                                            "HF_MODEL", "TT_WEIGHTS_REVISION", "SP_WEIGHTS_DIR"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    has_builtin = 0;
    strcpy(home, "/tmp/lensing-locate-XXXXXX");
    if (mkdtemp(home) == NULL || chdir(home) != 0)
        return -1;
    return setenv("HOME", home, 1);
}

static int tear_down(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* Expects a location; the safetensors file is given relative to the home. */
static void expect(const char *weights, const char *file, const char *repository, const char *revision) {
    lns_weights_location *location;
    if (lns_weights_locate(weights, &location) != LNS_OK)
        fail_msg("%s: %s", weights != NULL ? weights : "NULL", lns_error_message());
    const char *relative = location->safetensors[0] == '/' ? path_of(file) : file;
    assert_string_equal(location->safetensors, relative);
    assert_string_equal(location->repository, repository);
    if (revision == NULL)
        assert_null(location->revision);
    else
        assert_string_equal(location->revision, revision);
    lns_weights_location_close(&location);
    assert_null(location);
}

static void expect_failure(const char *weights, lns_status status, const char *message) {
    lns_weights_location *location = (lns_weights_location *)&location;
    const lns_status got = lns_weights_locate(weights, &location);
    if (got != status || location != NULL || strstr(lns_error_message(), message) == NULL)
        fail_msg("%s: status %d: %s", weights != NULL ? weights : "NULL", got, lns_error_message());
}

static void branch_in_the_cache(void **state) {
    (void)state;
    put(".cache/huggingface/hub/" MODEL "/refs/main", SHA);
    put_weights(".cache/huggingface/hub/" MODEL "/snapshots/" SHA);
    static const char file[] = ".cache/huggingface/hub/" MODEL "/snapshots/" SHA "/model.safetensors";
    expect(NULL, file, "magic-leap-community/superpoint", NULL);
    expect("", file, "magic-leap-community/superpoint", NULL);
    expect("magic-leap-community/superpoint", file, "magic-leap-community/superpoint", NULL);
    expect("magic-leap-community/superpoint@main", file, "magic-leap-community/superpoint", "main");
    expect("magic-leap-community/superpoint@" SHA, file, "magic-leap-community/superpoint", SHA);
    setenv("HF_MODEL", "", 1);
    setenv("TT_WEIGHTS_REVISION", "", 1);
    setenv("SP_WEIGHTS_DIR", "", 1);
    expect(NULL, file, "magic-leap-community/superpoint", NULL);
    setenv("TT_WEIGHTS_REVISION", SHA, 1);
    expect(NULL, file, "magic-leap-community/superpoint", SHA);
    expect("magic-leap-community/superpoint", file, "magic-leap-community/superpoint", NULL);

    lns_weights_location *location;
    assert_int_equal(lns_weights_locate(NULL, &location), LNS_OK);
    assert_null(location->local_dir);
    assert_string_equal(location->config, path_of(".cache/huggingface/hub/" MODEL "/snapshots/" SHA "/config.json"));
    lns_weights_location_close(&location);
}

static void commit_without_a_branch(void **state) {
    (void)state;
    put_weights(".cache/huggingface/hub/" MODEL "/snapshots/" SHA);
    setenv("TT_WEIGHTS_REVISION", SHA, 1);
    expect(NULL, ".cache/huggingface/hub/" MODEL "/snapshots/" SHA "/model.safetensors",
           "magic-leap-community/superpoint", SHA);
    unsetenv("TT_WEIGHTS_REVISION");
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "(revision main) are not on this machine: no snapshot in '");
    expect_failure("magic-leap-community/superpoint@0123456", LNS_ERROR_WEIGHTS, "revision 0123456");
}

static void branches_and_tags(void **state) {
    (void)state;
    put("c/models--org--name/refs/main", SHA "\n");
    put("c/models--org--name/refs/refs/pr/1", SHA2);
    put_weights("c/models--org--name/snapshots/" SHA);
    put_weights("c/models--org--name/snapshots/" SHA2);
    setenv("HF_HUB_CACHE", path_of("c"), 1);
    expect("org/name", "c/models--org--name/snapshots/" SHA "/model.safetensors", "org/name", NULL);
    expect("org/name@refs/pr/1", "c/models--org--name/snapshots/" SHA2 "/model.safetensors", "org/name", "refs/pr/1");
    setenv("HF_MODEL", "org/name", 1);
    setenv("TT_WEIGHTS_REVISION", "refs/pr/1", 1);
    expect(NULL, "c/models--org--name/snapshots/" SHA2 "/model.safetensors", "org/name", "refs/pr/1");
    setenv("HF_MODEL", "org/name@main", 1);
    expect(NULL, "c/models--org--name/snapshots/" SHA "/model.safetensors", "org/name", "main");
}

static void places_of_the_cache(void **state) {
    (void)state;
    static const char *const folders[] = {".cache/huggingface/hub", "x/huggingface/hub", "h/hub", "c", "t/c"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char snapshot[200];
        snprintf(snapshot, sizeof snapshot, "%s/models--org--name/snapshots/" SHA, folders[i]);
        put_weights(snapshot);
        if (i == 1)
            setenv("XDG_CACHE_HOME", path_of("x"), 1);
        else if (i == 2)
            setenv("HF_HOME", path_of("h"), 1);
        else if (i == 3)
            setenv("HF_HUB_CACHE", path_of("c"), 1);
        else if (i == 4)
            setenv("HF_HUB_CACHE", "~/t/c", 1);
        strcat(snapshot, "/model.safetensors");
        expect("org/name@" SHA, snapshot, "org/name", SHA);
    }
    unsetenv("HOME");
    expect_failure("org/name@" SHA, LNS_ERROR_SYSTEM, "HOME is not set");
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    setenv("HF_HUB_CACHE", path_of("c"), 1);
    expect_failure("org/name@v1", LNS_ERROR_WEIGHTS, "'org/name' (revision v1)");
    expect_failure("org/name@v1", LNS_ERROR_WEIGHTS, "`lensing fetch org/name@v1`");
    expect_failure("org/name@v1", LNS_ERROR_WEIGHTS, path_of("c/models--org--name"));
    expect_failure("org/name", LNS_ERROR_WEIGHTS, "`lensing fetch org/name`");
    assert_null(strstr(lns_error_message(), "noncommercial"));
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "`lensing fetch magic-leap-community/superpoint`");
    assert_non_null(strstr(lns_error_message(), "noncommercial"));
    put("c/models--org--name/snapshots/" SHA "/config.json", "{}");
    expect_failure("org/name@" SHA, LNS_ERROR_WEIGHTS, "no model.safetensors in '");
    put("c/models--org--name/snapshots/" SHA2 "/model.safetensors", "x");
    expect_failure("org/name@" SHA2, LNS_ERROR_WEIGHTS, "no config.json in '");
    put("c/models--org--name/refs/main", SHA); /* the link to the blob is broken */
    assert_int_equal(symlink("../../blobs/x", path_of("c/models--org--name/snapshots/" SHA "/model.safetensors")), 0);
    expect_failure("org/name", LNS_ERROR_WEIGHTS, "no model.safetensors in '");
}

static void damaged_refs(void **state) {
    (void)state;
    setenv("HF_HUB_CACHE", path_of("c"), 1);
    put_weights("c/models--org--name/snapshots/" SHA);
    static const char *const texts[] = {"", "\n", "..", ".", "../../x", "/etc", "a/b", "\x01"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("c/models--org--name/refs/main", texts[i]);
        expect_failure("org/name", LNS_ERROR_WEIGHTS, "refs/main' is damaged");
    }
    char large[300];
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    put("c/models--org--name/refs/main", large);
    expect_failure("org/name", LNS_ERROR_LIMIT, "refs/main");
}

static void folders_and_files(void **state) {
    (void)state;
    put_weights("w");
    put_weights("org/name"); /* a folder here wins over a repository of that name */
    put("lone.safetensors", "x");
    put("other", "x");
    expect(path_of("w"), "w/model.safetensors", path_of("w"), NULL);
    expect("./w", "./w/model.safetensors", "./w", NULL);
    expect("w", "w/model.safetensors", "w", NULL);
    expect("~/w", "w/model.safetensors", "~/w", NULL);
    expect("org/name", "org/name/model.safetensors", "org/name", NULL);
    expect("lone.safetensors", "lone.safetensors", "lone.safetensors", NULL);
    expect("other", "other", "other", NULL);
    setenv("HF_MODEL", path_of("w"), 1);
    setenv("TT_WEIGHTS_REVISION", SHA, 1);
    expect(NULL, "w/model.safetensors", path_of("w"), SHA);
    expect_failure("./none", LNS_ERROR_WEIGHTS, "no such folder or file");
    expect_failure("/none", LNS_ERROR_WEIGHTS, "'/none'");
    expect_failure("none.safetensors", LNS_ERROR_WEIGHTS, "no such folder or file");
    expect_failure("a/b.safetensors", LNS_ERROR_WEIGHTS, "no such folder or file");
    expect_failure("none", LNS_ERROR_WEIGHTS, "neither a folder or file here nor a repository id");
    put("half/config.json", "{}");
    expect_failure("half", LNS_ERROR_WEIGHTS, "no file model.safetensors");

    lns_weights_location *location;
    put("config.json", "{}"); /* beside the file, and not meant for it */
    assert_int_equal(lns_weights_locate("lone.safetensors", &location), LNS_OK);
    assert_null(location->config);
    assert_null(location->local_dir);
    lns_weights_location_close(&location);
    assert_int_equal(lns_weights_locate("w", &location), LNS_OK);
    assert_string_equal(location->config, "w/config.json");
    assert_string_equal(location->local_dir, "w");
    lns_weights_location_close(&location);
}

static void folder_of_the_environment(void **state) {
    (void)state;
    put_weights("w");
    put("file", "x");
    setenv("HF_MODEL", "org/name", 1);
    setenv("SP_WEIGHTS_DIR", path_of("w"), 1);
    expect(NULL, "w/model.safetensors", path_of("w"), NULL);
    setenv("SP_WEIGHTS_DIR", "nowhere", 1);
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "SP_WEIGHTS_DIR='nowhere' is not a directory");
    setenv("SP_WEIGHTS_DIR", "file", 1);
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "SP_WEIGHTS_DIR='file' is not a directory");
}

static void expect_builtin(const char *weights) {
    lns_weights_location *location;
    if (lns_weights_locate(weights, &location) != LNS_OK)
        fail_msg("%s: %s", weights != NULL ? weights : "NULL", lns_error_message());
    assert_null(location->safetensors);
    assert_null(location->config);
    assert_string_equal(location->repository, BUILTIN);
    assert_null(location->revision);
    assert_null(location->local_dir);
    lns_weights_location_close(&location);
}

static void builtin_when_nothing_is_named(void **state) {
    (void)state;
    static const char cached[] = ".cache/huggingface/hub/" MODEL "/snapshots/" SHA "/model.safetensors";
    put(".cache/huggingface/hub/" MODEL "/refs/main", SHA);
    put_weights(".cache/huggingface/hub/" MODEL "/snapshots/" SHA);
    put_weights("w");
    put(BUILTIN "/config.json", "{}"); /* a folder of that name needs a "./" */
    has_builtin = 1;
    assert_string_equal(lns_weights_builtin(), BUILTIN);
    expect_builtin(NULL);
    expect_builtin("");
    setenv("HF_MODEL", "", 1);
    setenv("TT_WEIGHTS_REVISION", "", 1);
    setenv("SP_WEIGHTS_DIR", "", 1);
    expect_builtin(NULL);
    /* Whatever is named wins. */
    expect("w", "w/model.safetensors", "w", NULL);
    expect("magic-leap-community/superpoint", cached, "magic-leap-community/superpoint", NULL);
    expect_failure("./" BUILTIN, LNS_ERROR_WEIGHTS, "no file model.safetensors");
    setenv("TT_WEIGHTS_REVISION", SHA, 1);
    expect(NULL, cached, "magic-leap-community/superpoint", SHA);
    setenv("HF_MODEL", "magic-leap-community/superpoint", 1);
    expect(NULL, cached, "magic-leap-community/superpoint", SHA);
    setenv("HF_MODEL", "no/such", 1);
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "'no/such'");
    setenv("SP_WEIGHTS_DIR", path_of("w"), 1);
    expect(NULL, "w/model.safetensors", path_of("w"), NULL);
    /* Named, the weights of the library win too. */
    expect_builtin(BUILTIN);
    setenv("SP_WEIGHTS_DIR", "", 1);
    setenv("HF_MODEL", BUILTIN, 1);
    expect_builtin(NULL);
}

static void no_builtin(void **state) {
    (void)state;
    assert_null(lns_weights_builtin());
    expect_failure(BUILTIN, LNS_ERROR_WEIGHTS, "neither a folder or file here nor a repository id");
    expect_failure(NULL, LNS_ERROR_WEIGHTS, "`lensing fetch magic-leap-community/superpoint`");
}

static void names_that_leave_the_cache(void **state) {
    (void)state;
    static const char *const names[] = {"a/..",   "a/.",  "a/b@..",  "a/b@../../x", "a/b@x/../../y", "a/b@/x",
                                        "a/b@x/", "a/b@", "a/b@x@y", "a/b@x y",     "a/b@\xc3\xa4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const lns_status status = strchr(names[i], '@') != NULL ? LNS_ERROR_INVALID_ARGUMENT : LNS_ERROR_WEIGHTS;
        expect_failure(names[i], status, strchr(names[i], '@') != NULL ? "is not a revision" : "repository id");
    }
    static const char *const repositories[] = {"a/b/c", "a//b", "a b/c", "a/", "a/b\n", "\xc3\xa4/b"};
    for (size_t i = 0; i < sizeof repositories / sizeof *repositories; i++)
        expect_failure(repositories[i], LNS_ERROR_WEIGHTS, "repository id");
    setenv("TT_WEIGHTS_REVISION", "../x", 1);
    expect_failure(NULL, LNS_ERROR_INVALID_ARGUMENT, "TT_WEIGHTS_REVISION: '../x' is not a revision");
    setenv("HF_MODEL", "a", 1);
    expect_failure(NULL, LNS_ERROR_INVALID_ARGUMENT, "'a' is not a repository id");
    assert_int_equal(lns_weights_locate("a/b", NULL), LNS_ERROR_INVALID_ARGUMENT);
}

static void failing_allocations(void **state) {
    (void)state;
    put("c/models--org--name/refs/main", SHA);
    put_weights("c/models--org--name/snapshots/" SHA);
    setenv("HF_HUB_CACHE", path_of("c"), 1);
    has_builtin = 1;
    static const char *const names[] = {"org/name@main", "c/models--org--name/snapshots/" SHA, NULL};
    for (size_t i = 0; i < 3; i++) {
        lns_status status = LNS_ERROR_OUT_OF_MEMORY;
        for (int tries = 0; status != LNS_OK; tries++) {
            lns_weights_location *location;
            lns_alloc_fail_after(tries);
            status = lns_weights_locate(names[i], &location);
            lns_alloc_fail_after(-1);
            assert_true(status == LNS_OK || (status == LNS_ERROR_OUT_OF_MEMORY && location == NULL && tries < 50));
            lns_weights_location_close(&location);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(branch_in_the_cache), TEST(commit_without_a_branch),   TEST(branches_and_tags),
        TEST(places_of_the_cache), TEST(what_is_missing_is_named),  TEST(damaged_refs),
        TEST(folders_and_files),   TEST(folder_of_the_environment), TEST(names_that_leave_the_cache),
        TEST(failing_allocations), TEST(no_builtin),                TEST(builtin_when_nothing_is_named),
    };
    return cmocka_run_group_tests_name("locate", tests, NULL, NULL);
}
