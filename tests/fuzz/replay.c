/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds files to a fuzzing target without a fuzzer: every file given, and every file of every folder given. A crash, a
 * sanitizer's report or a time-out of the test is the failure. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    /* Of exactly this size, so that a sanitizer sees every byte too many. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    const int failed = size < 0 || data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size;
    fclose(file);
    if (failed)
        perror(path);
    else
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    *count += !failed;
    return failed;
}

static int replay(const char *path, size_t *count) {
    struct stat facts;
    if (stat(path, &facts) != 0) {
        perror(path);
        return 1;
    }
    if (!S_ISDIR(facts.st_mode))
        return replay_file(path, count);
    DIR *folder = opendir(path);
    int failed = folder == NULL;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        failed |= replay(inner, count);
    }
    if (folder != NULL)
        closedir(folder);
    return failed;
}

int main(int argument_count, char **arguments) {
    size_t count = 0;
    int failed = 0;
    for (int i = 1; i < argument_count; i++)
        failed |= replay(arguments[i], &count);
    printf("%zu inputs\n", count);
    return failed || count == 0;
}
