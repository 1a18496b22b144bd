/* SPDX-License-Identifier: Apache-2.0 */
/* What the network on the simulated card makes of photos, for check_card.py.
 *
 * card_maps WEIGHTS   reads commands from stdin, one a line, and answers each on stdout as dump_maps does:
 *   photo PATH   width and height of the photo (uint32), the frame (480 x 640 bytes), scores (480 x 640 float32),
 *                descriptors (60 x 80 x 256 float32), and then the milliseconds that the network took (float64)
 * The first failure ends the program with a line on stderr and exit code 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lensing/lensing.h>

#include "base/clock.h"
#include "blackhole/network.h"
#include "blackhole/sim.h"

enum {
    FRAME = LNS_NETWORK_WIDTH * LNS_NETWORK_HEIGHT,
    MAP = LNS_NETWORK_WIDTH / 8 * (LNS_NETWORK_HEIGHT / 8) * LNS_DESCRIPTOR_SIZE
};

static uint8_t frame[FRAME];
static float scores[FRAME], descriptors[MAP];

static void check(lns_status status, const char *what) {
    if (status == LNS_OK)
        return;
    fprintf(stderr, "card_maps: %s: %s\n", what, lns_error_message());
    exit(1);
}

static void put(const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, stdout) != size) {
        fprintf(stderr, "card_maps: cannot write the answer\n");
        exit(1);
    }
}

static void photo(lns_blackhole_network *network, const char *path) {
    lns_plane *plane, *small;
    check(lns_plane_read(path, NULL, &plane), path);
    check(lns_plane_resize(plane, LNS_NETWORK_WIDTH, LNS_NETWORK_HEIGHT, &small), path);
    for (uint32_t y = 0; y < LNS_NETWORK_HEIGHT; y++)
        memcpy(frame + y * LNS_NETWORK_WIDTH, small->data + y * small->stride, LNS_NETWORK_WIDTH);
    const uint32_t size[2] = {plane->width, plane->height};
    lns_plane_close(&small);
    lns_plane_close(&plane);
    const double begin = lns_clock_ms();
    check(lns_blackhole_network_run(network, frame, scores, descriptors), path);
    const double milliseconds = lns_clock_ms() - begin;
    put(size, sizeof size);
    put(frame, sizeof frame);
    put(scores, sizeof scores);
    put(descriptors, sizeof descriptors);
    put(&milliseconds, sizeof milliseconds);
    fflush(stdout);
}

int main(int count, char **arguments) {
    const lns_blackhole_grid grid = {LNS_BLACKHOLE_COLUMNS, LNS_BLACKHOLE_ROWS};
    lns_weights_location *location;
    lns_superpoint_weights *weights;
    lns_blackhole_transport *card;
    lns_blackhole_network *network;
    char line[4096];
    if (count != 2) {
        fprintf(stderr, "usage: card_maps WEIGHTS\n");
        return 1;
    }
    check(lns_weights_locate(arguments[1], &location), arguments[1]);
    check(lns_superpoint_weights_load(location, &weights), arguments[1]);
    check(lns_blackhole_open_sim(&card), "simulator");
    check(lns_blackhole_network_open(card, weights, grid, &network), "network");
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "photo ", 6) != 0) {
            fprintf(stderr, "card_maps: cannot obey '%s'\n", line);
            return 1;
        }
        photo(network, line + 6);
    }
    lns_blackhole_network_close(&network);
    card->operations->close(card);
    lns_superpoint_weights_close(&weights);
    lns_weights_location_close(&location);
    return 0;
}
