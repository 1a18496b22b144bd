/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fake_driver.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blackhole/kmd_abi.h"

#define DESCRIPTORS 16
#define FIRST_DESCRIPTOR 1000
#define WINDOWS 8
#define SLOTS 2048
#define SLOT ((size_t)LNS_KMD_WINDOW_SIZE)

#define MAP_UNCACHED (UINT64_C(6) << 36)
#define MAP_COMBINING (UINT64_C(7) << 36)
#define MAP_BUFFER (UINT64_C(0xf00) << 32)
#define NOC_HOST (UINT64_C(4) << 58)

/* What a multicast window holds where nothing was written. */
#define UNTOUCHED 0x5a17c3e9u

fake_driver fake;

/* ---- Memory of tiles: pieces of 2 MiB in one file ----------------------------------------------- */

typedef struct slot_key {
    int card, x, y;
    uint64_t base;
} slot_key;

static slot_key keys[SLOTS];
static int slot_count;
static int store = -1;

/* Tiles of DRAM come in threes that have one memory. */
static slot_key key_of(int card, int x, int y, uint64_t address) {
    const fake_card *c = &fake.cards[card];
    slot_key key = {card, x, y, address / SLOT};
    if (x >= 17 && x <= 18 && y >= 12) {
        key.y -= (y - 12) % 3;
        if (c->half_dram)
            key.base = address % (UINT64_C(1) << 31) / SLOT;
    }
    if (c->twin_tiles && x == 6 && y == 5 && address < SLOT)
        key.x = 5;
    return key;
}

static off_t slot_of(int card, int x, int y, uint64_t address) {
    const slot_key key = key_of(card, x, y, address);
    for (int i = 0; i < slot_count; i++)
        if (keys[i].card == key.card && keys[i].x == key.x && keys[i].y == key.y && keys[i].base == key.base)
            return (off_t)SLOT * i;
    assert(slot_count < SLOTS);
    keys[slot_count] = key;
    return (off_t)SLOT * slot_count++;
}

static void empty_store(void) {
    if (store < 0)
        store = memfd_create("tiles", 0);
    assert(store >= 0 && ftruncate(store, 0) == 0 && ftruncate(store, (off_t)SLOT * SLOTS) == 0);
    slot_count = 0;
}

/* Memory of the process lies in the same file, so that windows can show it too. */
typedef struct host_memory {
    uint8_t *address;
    size_t size;
    off_t place;
} host_memory;

static host_memory host_memories[8];

static off_t take_slots(size_t count) {
    const off_t place = (off_t)SLOT * slot_count;
    for (size_t i = 0; i < count; i++) {
        assert(slot_count < SLOTS);
        keys[slot_count++] = (slot_key){.card = -1};
    }
    return place;
}

/* ---- Descriptors and windows -------------------------------------------------------------------- */

typedef struct window {
    int descriptor; /* 0: free */
    int card;
    uint8_t *memory; /* NULL: not mapped */
    lns_kmd_configure_window target;
    int has_target;
} window;

typedef struct pin {
    uint64_t address, size;
} pin;

typedef struct descriptor {
    int is_open, card, is_dead;
    unsigned power;
    lns_kmd_cleanup cleanup;
    pin pins[8];
    uint8_t buffers[LNS_KMD_DMA_BUFFERS];
} descriptor;

static window windows[WINDOWS];
static descriptor descriptors[DESCRIPTORS];

static int fails(const char *call) {
    fake.calls++;
    if (fake.fail_at != fake.calls)
        return 0;
    fake.failed_call = call;
    errno = fake.fail_errno;
    return 1;
}

static descriptor *descriptor_of(int fd) {
    const int i = fd - FIRST_DESCRIPTOR;
    assert(i >= 0 && i < DESCRIPTORS && descriptors[i].is_open);
    return &descriptors[i];
}

static int refuse(int error) {
    errno = error;
    return -1;
}

static void poke_all(const window *w, uint64_t address, const uint32_t *words, size_t count) {
    const lns_kmd_configure_window *t = &w->target;
    for (int x = t->x_start; x <= t->x_end + fake.cards[w->card].wide_multicast; x++)
        for (int y = t->y_start; y <= t->y_end; y++)
            if (x != 8 && x != 9)
                fake_driver_poke(w->card, x, y, address, words, 4 * count);
}

/* A window at many tiles shows a piece of its own; here it goes to the tiles. */
static void deliver(const window *w) {
    if (w->memory == NULL || !w->has_target || !w->target.multicast)
        return;
    uint32_t *words = (uint32_t *)(void *)w->memory;
    for (size_t i = 0, end; i < SLOT / 4; i = end + 1) {
        for (end = i; end < SLOT / 4 && words[end] != UNTOUCHED; end++)
            ;
        if (end == i)
            continue;
        poke_all(w, w->target.address + 4 * i, words + i, end - i);
        for (size_t j = i; j < end; j++)
            words[j] = UNTOUCHED;
    }
}

static void deliver_all(void) {
    for (int i = 0; i < WINDOWS; i++)
        if (windows[i].descriptor != 0)
            deliver(&windows[i]);
}

static void show_slot(window *w, off_t place) {
    void *shown = mmap(w->memory, SLOT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, store, place);
    assert(shown == w->memory);
}

/* What is pinned begins at a multiple of the size of a window. */
static void show_host(window *w) {
    const descriptor *d = descriptor_of(w->descriptor);
    for (size_t i = 0; i < sizeof d->pins / sizeof d->pins[0]; i++) {
        const uint64_t start = NOC_HOST + (i << 32), address = w->target.address;
        if (fake.cards[w->card].no_host || d->pins[i].size == 0 || address < start ||
            address >= start + d->pins[i].size)
            continue;
        for (size_t j = 0; j < sizeof host_memories / sizeof host_memories[0]; j++)
            if ((uintptr_t)host_memories[j].address == d->pins[i].address)
                show_slot(w, host_memories[j].place + (off_t)(address - start));
        return;
    }
    show_slot(w, slot_of(w->card, 19, 24, w->target.address));
}

static void show_target(window *w) {
    const lns_kmd_configure_window *t = &w->target;
    if (w->memory == NULL || !w->has_target)
        return;
    if (fake.cards[w->card].is_gone || t->multicast) {
        void *shown = mmap(w->memory, SLOT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        assert(shown == w->memory);
        for (size_t i = 0; i < SLOT / 4; i++)
            ((uint32_t *)(void *)w->memory)[i] = t->multicast ? UNTOUCHED : UINT32_MAX;
        return;
    }
    if (t->x_end == 19 && t->y_end == 24)
        show_host(w);
    else
        show_slot(w, slot_of(w->card, t->x_end, t->y_end, t->address));
}

/* ---- The card's own memory ---------------------------------------------------------------------- */

#define ARC_X 8
#define ARC_Y 0
#define TABLE 0x10000100u
#define VALUES 0x10000600u

void fake_driver_peek(int card, int x, int y, uint64_t address, void *data, size_t size) {
    deliver_all();
    const off_t place = slot_of(card, x, y, address) + (off_t)(address % SLOT);
    assert(pread(store, data, size, place) == (ssize_t)size);
}

void fake_driver_poke(int card, int x, int y, uint64_t address, const void *data, size_t size) {
    const off_t place = slot_of(card, x, y, address) + (off_t)(address % SLOT);
    assert(pwrite(store, data, size, place) == (ssize_t)size);
}

static void poke32(int card, uint32_t address, uint32_t value) {
    fake_driver_poke(card, ARC_X, ARC_Y, address, &value, sizeof value);
}

/* As the firmware leaves it; the places are in another order than the tags. */
static void write_telemetry(int index) {
    const fake_card *card = &fake.cards[index];
    const struct {
        uint32_t tag, value;
        int is_there;
    } tags[] = {
        {1, 0x43, 1},
        {11, 41u << 16 | 0x8000, 1},
        {14, 1350, 1},
        {28, 0x13050000, 1},
        {34, card->columns, card->tells_columns},
        {40, (uint32_t)card->translates, card->translates >= 0},
    };
    const uint32_t tag_count = sizeof tags / sizeof tags[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < tag_count; i++) {
        if (!tags[i].is_there)
            continue;
        poke32(index, TABLE + 8 + 4 * count++, tags[i].tag | (tag_count - i) << 16);
        poke32(index, VALUES + 4 * (tag_count - i), tags[i].value);
    }
    poke32(index, TABLE, card->table_version);
    poke32(index, TABLE + 4, card->table_entries != 0 ? card->table_entries : count);
    poke32(index, 0x80030408, card->boot_status);
    poke32(index, 0x80030434, card->table_address);
    poke32(index, 0x80030430, VALUES);
}

/* Every tile knows its place. */
static void write_places(int card) {
    for (int x = 1; x <= 16; x++)
        for (int y = 2; y <= 11; y++) {
            const int is_turned = fake.cards[card].turned_tiles && x == 6 && y == 5;
            const uint32_t place = (uint32_t)(is_turned ? 6 << 6 | 5 : y << 6 | x);
            fake_driver_poke(card, x, y, 0xFFB20148, &place, sizeof place);
        }
}

/* ---- Files -------------------------------------------------------------------------------------- */

static int find_card(const char *path) {
    int number;
    if (!fake.is_loaded || sscanf(path, "/dev/tenstorrent/%d", &number) != 1)
        return -1;
    for (int i = 0; i < FAKE_CARDS; i++)
        if (fake.cards[i].is_present && fake.cards[i].number == number)
            return i;
    return -1;
}

static int fake_open(const char *path, int flags) {
    (void)flags;
    if (fails("open"))
        return -1;
    if (fake.open_error != 0)
        return refuse(fake.open_error);
    const int card = find_card(path);
    if (card < 0)
        return refuse(ENOENT);
    for (int i = 0; i < DESCRIPTORS; i++) {
        if (descriptors[i].is_open)
            continue;
        descriptors[i] = (descriptor){.is_open = 1, .card = card};
        fake.open_descriptors++;
        write_telemetry(card);
        write_places(card);
        return FIRST_DESCRIPTOR + i;
    }
    return refuse(EMFILE);
}

static void drop(int fd, descriptor *d) {
    fake_card *card = &fake.cards[d->card];
    for (int i = 0; i < WINDOWS; i++) {
        if (windows[i].descriptor != fd)
            continue;
        windows[i] = (window){0};
        fake.windows--;
        fake.dropped++;
    }
    for (size_t i = 0; i < sizeof d->pins / sizeof d->pins[0]; i++) {
        if (d->pins[i].size == 0)
            continue;
        fake.pins--;
        fake.dropped++;
    }
    for (int i = 0; i < LNS_KMD_DMA_BUFFERS; i++)
        fake.buffers -= d->buffers[i];
    if (card->lock_holder == fd) {
        card->lock_holder = -1;
        fake.dropped++;
    }
    fake.dropped += d->power != 0;
}

/* The card gets all that any descriptor asks for. */
static void add_up_power(int card) {
    fake.cards[card].power = 0;
    for (int i = 0; i < DESCRIPTORS; i++)
        if (descriptors[i].is_open && descriptors[i].card == card)
            fake.cards[card].power |= descriptors[i].power;
}

static int fake_close(int fd) {
    descriptor *d = descriptor_of(fd);
    deliver_all();
    if (d->cleanup.enabled && !d->is_dead) {
        const uint32_t data = (uint32_t)d->cleanup.data;
        fake_driver_poke(d->card, d->cleanup.x, d->cleanup.y, d->cleanup.address, &data, 4);
    }
    drop(fd, d);
    d->is_open = 0;
    add_up_power(d->card);
    fake.open_descriptors--;
    return 0;
}

static ssize_t fake_read_file(const char *path, void *bytes, size_t size) {
    if (fails("read_file"))
        return -1;
    if (strstr(path, "/pids") != NULL && fake.pids != NULL) {
        const size_t count = strlen(fake.pids) < size ? strlen(fake.pids) : size;
        memcpy(bytes, fake.pids, count);
        return (ssize_t)count;
    }
    fake_card *card = &fake.cards[0];
    if (strcmp(path, "/sys/bus/pci/devices/0000:03:00.0/config") != 0)
        return refuse(ENOENT);
    memset(bytes, 0, size);
    if (card->reset_steps != 0)
        ((uint8_t *)bytes)[4] = 0x46;
    if (card->reset_steps > 0 && --card->reset_steps == 0)
        card->number = card->number_after_reset;
    return (ssize_t)size;
}

static int fake_list_numbers(const char *folder, int *numbers, int room) {
    if (fails("list_numbers"))
        return -1;
    if (!fake.is_loaded || strcmp(folder, "/dev/tenstorrent") != 0)
        return refuse(ENOENT);
    int count = 0;
    for (int i = 0; i < FAKE_CARDS && count < room; i++)
        if (fake.cards[i].is_present)
            numbers[count++] = fake.cards[i].number;
    return count;
}

static void fake_sleep_ms(unsigned ms) {
    fake.slept_ms += ms;
}

/* ---- Mappings ----------------------------------------------------------------------------------- */

static void *fake_map(int fd, uint64_t offset, size_t size) {
    descriptor_of(fd);
    if (fails("map"))
        return NULL;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED);
    fake.mappings++;
    if (offset >= MAP_BUFFER)
        return memory;
    const uint64_t base = offset >= MAP_COMBINING ? MAP_COMBINING : MAP_UNCACHED;
    window *w = &windows[(offset - base) / SLOT];
    assert(w->descriptor == fd && size == SLOT);
    w->memory = memory;
    show_target(w);
    return memory;
}

static void fake_unmap(void *address, size_t size) {
    deliver_all();
    for (int i = 0; i < WINDOWS; i++)
        if (windows[i].memory == address)
            windows[i].memory = NULL;
    munmap(address, size);
    fake.mappings--;
}

static void *fake_allocate(size_t size) {
    if (fails("allocate"))
        return NULL;
    const off_t place = take_slots((size + SLOT - 1) / SLOT);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, store, place);
    assert(memory != MAP_FAILED);
    host_memories[fake.allocations++ % 8] = (host_memory){memory, size, place};
    return memory;
}

static void fake_release(void *address, size_t size) {
    for (size_t i = 0; i < sizeof host_memories / sizeof host_memories[0]; i++)
        if (host_memories[i].address == address)
            host_memories[i] = (host_memory){0};
    munmap(address, size);
    fake.allocations--;
}

/* ---- Calls -------------------------------------------------------------------------------------- */

static int call_device_info(const fake_card *card, lns_kmd_device_info *info) {
    assert(info->output_size == sizeof *info - 4);
    info->filled = sizeof *info - 4;
    info->vendor = card->vendor;
    info->device = card->device;
    info->bus_device_function = (uint16_t)((3 + (card - fake.cards)) << 8);
    return 0;
}

static int call_driver_info(lns_kmd_driver_info *info) {
    assert(info->output_size == sizeof *info - 4);
    info->major = fake.major;
    info->minor = fake.minor;
    info->patch = fake.patch;
    return 0;
}

static int call_lock(int fd, fake_card *card, lns_kmd_lock *lock) {
    assert(lock->output_size == 4 && lock->index < 64);
    if (lock->operation == LNS_KMD_LOCK_ACQUIRE) {
        lock->value = card->lock_holder < 0 && !card->locked_by_other;
        if (lock->value)
            card->lock_holder = fd;
    } else if (lock->operation == LNS_KMD_LOCK_RELEASE) {
        lock->value = card->lock_holder == fd;
        if (lock->value)
            card->lock_holder = -1;
    } else {
        const int is_held = card->lock_holder >= 0 || card->locked_by_other;
        lock->value = (uint8_t)((card->lock_holder == fd) | is_held << 1);
    }
    return 0;
}

static int call_power(descriptor *d, const lns_kmd_power *power) {
    if (power->size != sizeof *power || power->flags != 0 || power->reserved != 0)
        return refuse(EINVAL);
    d->power = power->power & ((1u << (power->validity & 15)) - 1);
    add_up_power(d->card);
    return 0;
}

static int call_cleanup(descriptor *d, const lns_kmd_cleanup *cleanup) {
    if (cleanup->size != sizeof *cleanup || cleanup->flags != 0 || cleanup->enabled > 1 || cleanup->address % 4 != 0 ||
        cleanup->noc > 1)
        return refuse(EINVAL);
    d->cleanup = *cleanup;
    return 0;
}

static int call_reset(int fd, fake_card *card, lns_kmd_reset *reset) {
    assert(reset->output_size == 8);
    if (reset->kind == LNS_KMD_RESET_ASIC) {
        card->resets++;
        reset->result = (uint32_t)card->reset_fails;
        for (int i = 0; i < DESCRIPTORS; i++)
            descriptors[i].is_dead |=
                descriptors[i].is_open && descriptors[i].card == card - fake.cards && i + FIRST_DESCRIPTOR != fd;
        return 0;
    }
    if (reset->kind != LNS_KMD_RESET_DONE)
        return refuse(EINVAL);
    card->setups++;
    reset->result = (uint32_t)card->setup_fails;
    return 0;
}

static int call_pin(descriptor *d, lns_kmd_pin *p) {
    if (fake.wants_contiguous || p->address % 4096 != 0 || p->size % 4096 != 0 || p->size == 0)
        return refuse(EINVAL);
    assert(p->output_size == 16 && p->flags == LNS_KMD_PIN_FOR_NOC);
    for (size_t i = 0; i < sizeof d->pins / sizeof d->pins[0]; i++) {
        if (d->pins[i].size != 0)
            continue;
        d->pins[i] = (pin){p->address, p->size};
        p->bus_address = p->address;
        p->noc_address = NOC_HOST + (i << 32);
        fake.pins++;
        return 0;
    }
    return refuse(ENOSPC); /* as when all regions of the address translation are used */
}

static int call_unpin(descriptor *d, const lns_kmd_unpin *u) {
    for (size_t i = 0; i < sizeof d->pins / sizeof d->pins[0]; i++) {
        if (d->pins[i].size == 0 || d->pins[i].address != u->address || d->pins[i].size != u->size)
            continue;
        d->pins[i] = (pin){0};
        fake.pins--;
        return 0;
    }
    return refuse(EINVAL);
}

static int call_buffer(descriptor *d, lns_kmd_dma_buffer *buffer) {
    if (d->buffers[buffer->index] || buffer->requested_size % 4096 != 0)
        return refuse(EINVAL);
    d->buffers[buffer->index] = 1;
    buffer->size = buffer->requested_size;
    buffer->map_offset = MAP_BUFFER + ((uint64_t)buffer->index << 32);
    buffer->noc_address = NOC_HOST + (UINT64_C(1) << 40) + ((uint64_t)buffer->index << 32);
    fake.buffers++;
    return 0;
}

static int call_allocate_window(int fd, const descriptor *d, lns_kmd_allocate_window *allocated) {
    if (allocated->size != SLOT)
        return refuse(EINVAL);
    for (uint32_t i = 0; i < WINDOWS; i++) {
        if (windows[i].descriptor != 0)
            continue;
        windows[i] = (window){.descriptor = fd, .card = d->card};
        allocated->id = i;
        allocated->map_offset_uncached = MAP_UNCACHED + i * SLOT;
        allocated->map_offset_combining = MAP_COMBINING + i * SLOT;
        fake.windows++;
        return 0;
    }
    return refuse(ENOMEM);
}

static int call_free_window(int fd, const lns_kmd_free_window *freed) {
    window *w = &windows[freed->id];
    if (freed->id >= WINDOWS || w->descriptor != fd)
        return refuse(EPERM);
    if (w->memory != NULL)
        return refuse(EBUSY);
    *w = (window){0};
    fake.windows--;
    return 0;
}

static int call_configure_window(int fd, const lns_kmd_configure_window *target) {
    window *w = &windows[target->id];
    if (target->id >= WINDOWS || w->descriptor != fd)
        return refuse(EPERM);
    if (target->address % SLOT != 0)
        return refuse(EINVAL);
    deliver_all();
    w->target = *target;
    w->has_target = 1;
    show_target(w);
    return 0;
}

static const char *call_name(unsigned long request) {
    static const struct {
        unsigned long request;
        const char *name;
    } names[] = {
        {LNS_KMD_GET_DEVICE_INFO, "GET_DEVICE_INFO"},
        {LNS_KMD_GET_DRIVER_INFO, "GET_DRIVER_INFO"},
        {LNS_KMD_LOCK_CONTROL, "LOCK_CTL"},
        {LNS_KMD_SET_POWER_STATE, "SET_POWER_STATE"},
        {LNS_KMD_SET_NOC_CLEANUP, "SET_NOC_CLEANUP"},
        {LNS_KMD_RESET_DEVICE, "RESET_DEVICE"},
        {LNS_KMD_PIN_PAGES, "PIN_PAGES"},
        {LNS_KMD_UNPIN_PAGES, "UNPIN_PAGES"},
        {LNS_KMD_ALLOCATE_WINDOW, "ALLOCATE_TLB"},
        {LNS_KMD_FREE_WINDOW, "FREE_TLB"},
        {LNS_KMD_CONFIGURE_WINDOW, "CONFIGURE_TLB"},
        {LNS_KMD_ALLOCATE_DMA_BUFFER, "ALLOCATE_DMA_BUF"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].request == request)
            return names[i].name;
    return "an unknown ioctl";
}

static int fake_ioctl(int fd, unsigned long request, void *argument) {
    descriptor *d = descriptor_of(fd);
    fake_card *card = &fake.cards[d->card];
    if (fails(call_name(request)))
        return -1;
    if (d->is_dead)
        return refuse(ENODEV);
    switch (request) {
    case LNS_KMD_GET_DEVICE_INFO:
        return call_device_info(card, argument);
    case LNS_KMD_GET_DRIVER_INFO:
        return call_driver_info(argument);
    case LNS_KMD_LOCK_CONTROL:
        return call_lock(fd, card, argument);
    case LNS_KMD_SET_POWER_STATE:
        return call_power(d, argument);
    case LNS_KMD_SET_NOC_CLEANUP:
        return call_cleanup(d, argument);
    case LNS_KMD_RESET_DEVICE:
        return call_reset(fd, card, argument);
    case LNS_KMD_PIN_PAGES:
        return call_pin(d, argument);
    case LNS_KMD_UNPIN_PAGES:
        return call_unpin(d, argument);
    case LNS_KMD_ALLOCATE_DMA_BUFFER:
        return call_buffer(d, argument);
    case LNS_KMD_ALLOCATE_WINDOW:
        return call_allocate_window(fd, d, argument);
    case LNS_KMD_FREE_WINDOW:
        return call_free_window(fd, argument);
    case LNS_KMD_CONFIGURE_WINDOW:
        return call_configure_window(fd, argument);
    default:
        return refuse(EINVAL);
    }
}

const lns_kmd_system fake_system = {
    .open = fake_open,
    .close = fake_close,
    .ioctl = fake_ioctl,
    .map = fake_map,
    .unmap = fake_unmap,
    .allocate = fake_allocate,
    .release = fake_release,
    .read_file = fake_read_file,
    .list_numbers = fake_list_numbers,
    .sleep_ms = fake_sleep_ms,
};

/* ---- State -------------------------------------------------------------------------------------- */

void fake_driver_reset(void) {
    memset(windows, 0, sizeof windows);
    memset(descriptors, 0, sizeof descriptors);
    empty_store();
    fake = (fake_driver){.is_loaded = 1, .major = 2, .minor = 6, .fail_errno = EIO};
    for (int i = 0; i < FAKE_CARDS; i++)
        fake.cards[i] = (fake_card){
            .is_present = i == 0,
            .number = i,
            .vendor = LNS_KMD_VENDOR,
            .device = LNS_KMD_BLACKHOLE,
            .columns = 0x0fff,
            .tells_columns = 1,
            .translates = 1,
            .boot_status = 5,
            .table_version = 0x100,
            .table_address = TABLE,
            .lock_holder = -1,
        };
}

const char *fake_driver_leaks(void) {
    static char text[160];
    text[0] = '\0';
    if (fake.open_descriptors | fake.windows | fake.mappings | fake.pins | fake.buffers | fake.allocations)
        snprintf(text, sizeof text, "%d descriptors, %d windows, %d mappings, %d pins, %d buffers, %d allocations",
                 fake.open_descriptors, fake.windows, fake.mappings, fake.pins, fake.buffers, fake.allocations);
    for (int i = 0; i < FAKE_CARDS; i++)
        if (fake.cards[i].lock_holder >= 0 || fake.cards[i].power != 0)
            snprintf(text, sizeof text, "card %d: lock held by %d, power %u", i, fake.cards[i].lock_holder,
                     fake.cards[i].power);
    return text;
}
