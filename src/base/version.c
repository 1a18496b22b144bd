/* SPDX-License-Identifier: Apache-2.0 */
#include <lensing/version.h>

const char *lns_version(void) {
    return LNS_VERSION_STRING;
}
