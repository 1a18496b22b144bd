/* SPDX-License-Identifier: Apache-2.0 */
/* lensing fetch: not there yet. */
#include "cli.h"

const char lns_cli_fetch_help[] = "Usage: lensing fetch\n";

int lns_cli_fetch(int argc, char **argv) {
    (void)argc;
    lns_cli_error("%s: not part of this build yet", argv[0]);
    return LNS_CLI_OTHER;
}
