/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LENSING_WEIGHTS_CHECKSUM_H
#define LENSING_WEIGHTS_CHECKSUM_H

#include <lensing/status.h>

#define LNS_CHECKSUM_TEXT 65 /* hexadecimal digits of the longest one, and NUL */

/* SHA-256 of a file, as the server names files in large file storage. */
lns_status lns_checksum_sha256(const char *path, char text[LNS_CHECKSUM_TEXT]);
/* SHA-1 of a file with the header that git puts before it, as the server names all other files. */
lns_status lns_checksum_git_blob(const char *path, char text[LNS_CHECKSUM_TEXT]);

#endif
