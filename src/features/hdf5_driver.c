/* SPDX-License-Identifier: Apache-2.0 */
#include "lensing_config.h"

#if LNS_HAVE_HDF5

#include "features/hdf5_driver.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* As far as a file offset goes. */
#define LAST_ADDRESS ((haddr_t)INT64_MAX)

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t last) {
    (void)name;
    (void)flags;
    (void)last;
    lns_hdf5_driver *const *driver = lns_h5.Pget_driver_info(access);
    if (driver == NULL)
        return NULL;
    memset(&(*driver)->library, 0, sizeof(*driver)->library);
    return &(*driver)->library;
}

static herr_t driver_close(H5FD_t *file) {
    (void)file;
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t driver_used(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const lns_hdf5_driver *)file)->used;
}

static herr_t driver_set_used(H5FD_t *file, H5FD_mem_t type, haddr_t used) {
    (void)type;
    ((lns_hdf5_driver *)file)->used = used;
    return 0;
}

static haddr_t driver_size(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const lns_hdf5_driver *)file)->size;
}

/* What lies behind the end, or cannot be read any more after an error, is zero. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *bytes) {
    (void)type;
    (void)transfer;
    lns_hdf5_driver *driver = (lns_hdf5_driver *)file;
    char *to = bytes;
    while (size > 0) {
        const ssize_t got = pread(driver->descriptor, to, size, (off_t)address);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && driver->error == 0)
            driver->error = errno;
        if (got <= 0)
            break;
        to += got;
        size -= (size_t)got;
        address += (haddr_t)got;
    }
    memset(to, 0, size);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                           const void *bytes) {
    (void)type;
    (void)transfer;
    lns_hdf5_driver *driver = (lns_hdf5_driver *)file;
    const char *from = bytes;
    if (driver->size < address + size)
        driver->size = address + size;
    while (size > 0 && driver->error == 0) {
        const ssize_t done = pwrite(driver->descriptor, from, size, (off_t)address);
        if (done >= 0) {
            from += done;
            size -= (size_t)done;
            address += (haddr_t)done;
        } else if (errno != EINTR) {
            driver->error = errno;
        }
    }
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing) {
    (void)transfer;
    (void)closing;
    lns_hdf5_driver *driver = (lns_hdf5_driver *)file;
    if (driver->size != driver->used && driver->error == 0 && ftruncate(driver->descriptor, (off_t)driver->used) != 0)
        driver->error = errno;
    driver->size = driver->used;
    return 0;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 1021, /* any above the reserved ones */
#endif
    .name = "lensing",
    .maxaddr = LAST_ADDRESS,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(lns_hdf5_driver *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_used,
    .set_eoa = driver_set_used,
    .get_eof = driver_size,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t lns_hdf5_driver_create(lns_hdf5_driver *driver, const char *name) {
    const hid_t access = lns_h5.Pcreate(*lns_h5.P_CLS_FILE_ACCESS_ID_g);
    const hid_t registered = lns_h5.FDregister(&driver_class);
    hid_t file = H5I_INVALID_HID;
    if (access >= 0 && registered >= 0 && lns_h5.Pset_driver(access, registered, &driver) >= 0)
        file = lns_h5.Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    /* An open file keeps what it needs of both. */
    if (registered >= 0)
        lns_h5.FDunregister(registered);
    if (access >= 0)
        lns_h5.Pclose(access);
    return file;
}

#endif
