/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the host that the card can reach. */
#ifndef LENSING_BLACKHOLE_KMD_MEMORY_H
#define LENSING_BLACKHOLE_KMD_MEMORY_H

#include "blackhole/kmd_card.h"
#include "blackhole/transport.h"

#define LNS_KMD_MEMORIES 16

typedef struct lns_kmd_memory {
    void *data; /* NULL: free */
    size_t size;
    uint64_t noc_address;
    int is_of_driver; /* allocated by the driver, and not pinned */
} lns_kmd_memory;

typedef struct lns_kmd_memories {
    lns_kmd_memory slots[LNS_KMD_MEMORIES];
    int buffers_used; /* of LNS_KMD_DMA_BUFFERS */
} lns_kmd_memories;

/* Memory of the process, pinned, or, where the driver refuses that because the pages do not follow each other, memory
 * that the driver allocates; that is given back only when the card is closed. */
lns_status lns_kmd_memory_pin(const lns_kmd_card *card, lns_kmd_memories *memories, size_t size,
                              lns_blackhole_host_memory *memory);
void lns_kmd_memory_unpin(const lns_kmd_card *card, lns_kmd_memories *memories, lns_blackhole_host_memory *memory);
void lns_kmd_memory_unpin_all(const lns_kmd_card *card, lns_kmd_memories *memories);

#endif
