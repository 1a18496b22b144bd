/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "image/decoder.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_SIZE = 12 };

static uint32_t read16(const uint8_t *p, int big) {
    return big ? lns_read_be16(p) : lns_read_le16(p);
}

static uint32_t read32(const uint8_t *p, int big) {
    return big ? lns_read_be32(p) : lns_read_le32(p);
}

int lns_exif_orientation(const uint8_t *bytes, size_t size) {
    if (size >= 6 && memcmp(bytes, "Exif\0\0", 6) == 0) {
        bytes += 6;
        size -= 6;
    }
    if (size < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return 1;
    const int big = bytes[0] == 'M';
    const size_t directory = read32(bytes + 4, big);
    if (directory > size - 2)
        return 1;
    const uint8_t *entry = bytes + directory + 2;
    size_t left = size - directory - 2;
    for (uint32_t count = read16(bytes + directory, big); count > 0 && left >= ENTRY_SIZE; count--) {
        if (read16(entry, big) == TAG_ORIENTATION) {
            const uint32_t value = read16(entry + 8, big);
            const int sound = read16(entry + 2, big) == TYPE_SHORT && read32(entry + 4, big) == 1;
            return sound && value >= 1 && value <= 8 ? (int)value : 1;
        }
        entry += ENTRY_SIZE;
        left -= ENTRY_SIZE;
    }
    return 1;
}
