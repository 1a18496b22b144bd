/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/checksum.h"

#include <stdint.h>
#include <stdio.h>

#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

#include "base/file.h"

static void hexadecimal(const uint8_t *digest, size_t size, char *text) {
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

lns_status lns_checksum_sha256(const char *path, char text[LNS_CHECKSUM_TEXT]) {
    lns_file_map map;
    const lns_status status = lns_file_map_open(path, SIZE_MAX, &map);
    if (status != LNS_OK)
        return status;
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, map.size, map.bytes);
#if NETTLE_VERSION_MAJOR >= 4
    sha256_digest(&context, digest);
#else
    sha256_digest(&context, sizeof digest, digest);
#endif
    lns_file_map_close(&map);
    hexadecimal(digest, sizeof digest, text);
    return LNS_OK;
}

lns_status lns_checksum_git_blob(const char *path, char text[LNS_CHECKSUM_TEXT]) {
    lns_file_map map;
    const lns_status status = lns_file_map_open(path, SIZE_MAX, &map);
    if (status != LNS_OK)
        return status;
    struct sha1_ctx context;
    uint8_t digest[SHA1_DIGEST_SIZE];
    char header[40];
    const int length = snprintf(header, sizeof header, "blob %zu", map.size);
    sha1_init(&context);
    sha1_update(&context, (size_t)length + 1, (const uint8_t *)header); /* with its NUL */
    sha1_update(&context, map.size, map.bytes);
#if NETTLE_VERSION_MAJOR >= 4
    sha1_digest(&context, digest);
#else
    sha1_digest(&context, sizeof digest, digest);
#endif
    lns_file_map_close(&map);
    hexadecimal(digest, sizeof digest, text);
    return LNS_OK;
}
