/* SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blackhole/sim.h"

static lns_blackhole_transport *card;

lns_blackhole_transport *test_card(void) {
    const char *path = getenv(LNS_BLACKHOLE_SIM_VARIABLE);
    if (card != NULL)
        return card;
    if (path == NULL || *path == '\0') {
        static int said;
        if (!said)
            print_message("SKIP: " LNS_BLACKHOLE_SIM_VARIABLE
                          " is not set, nothing was tested on the simulated card\n");
        said = 1;
        return NULL;
    }
    if (lns_blackhole_open_sim(&card) != LNS_OK)
        fail_msg("%s", lns_error_message());
    return card;
}

lns_status run_tiles(lns_blackhole_transport *transport, lns_blackhole_tiles tiles, uint32_t program,
                     uint32_t request) {
    const lns_status status = lns_blackhole_ring_tiles(transport, tiles, program, request);
    return status == LNS_OK ? lns_blackhole_wait_for_tiles(transport, tiles, request, 600e3) : status;
}

void test_card_close(void) {
    if (card != NULL)
        card->operations->close(card);
    card = NULL;
}
