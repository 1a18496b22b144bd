/* SPDX-License-Identifier: Apache-2.0 */
#include <lensing/features.h>

#include "base/error.h"
#include "lensing_config.h"

#if LNS_HAVE_HDF5

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "features/hdf5_driver.h"

/* hloc stores with the keypoints how exactly a detector finds them, in pixels of the original picture; for SuperPoint
 * it counts two pixels of the network's frame. */
#define DETECTION_NOISE 2.0

struct lns_hdf5 {
    lns_hdf5_driver driver;
    hid_t file;
    char *path;
    char *temporary;
};

/* The library keeps global state, and in most packages it is built without locks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How the library reported errors before; it prints them unless told otherwise. */
typedef struct quiet {
    H5E_auto2_t function;
    void *data;
} quiet;

static void enter(quiet *before) {
    pthread_mutex_lock(&lock);
    before->function = NULL;
    before->data = NULL;
    lns_h5.open(); /* gives the variables their values */
    lns_h5.Eget_auto2(H5E_DEFAULT, &before->function, &before->data);
    lns_h5.Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void leave(const quiet *before) {
    lns_h5.Eset_auto2(H5E_DEFAULT, before->function, before->data);
    pthread_mutex_unlock(&lock);
}

/* The description at the place where an error began. */
static herr_t find_reason(unsigned level, const H5E_error2_t *error, void *context) {
    const char **reason = context;
    if (level == 0 && error->desc != NULL)
        *reason = error->desc;
    return 0;
}

static lns_status fail(const lns_hdf5 *file) {
    const char *reason = "the HDF5 library gave no reason";
    if (file->driver.error != 0)
        reason = strerror(file->driver.error);
    else
        lns_h5.Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_reason, &reason);
    return lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", file->path, reason);
}

static lns_status add_array(const lns_hdf5 *file, hid_t group, const char *name, int dimensions, const hsize_t *shape,
                            hid_t file_type, hid_t memory_type, const void *data, hid_t *dataset) {
    lns_status status = LNS_OK;
    const hid_t space = lns_h5.Screate_simple(dimensions, shape, NULL);
    /* Without the time of writing: the same pictures give the same file. */
    const hid_t properties = lns_h5.Pcreate(*lns_h5.P_CLS_DATASET_CREATE_ID_g);
    const hid_t set = space < 0 || properties < 0 || lns_h5.Pset_obj_track_times(properties, 0) < 0
                          ? H5I_INVALID_HID
                          : lns_h5.Dcreate2(group, name, file_type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (set < 0)
        status = fail(file);
    else if (shape[0] > 0 && shape[dimensions - 1] > 0 &&
             lns_h5.Dwrite(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        status = fail(file);
    if (properties >= 0)
        lns_h5.Pclose(properties);
    if (space >= 0)
        lns_h5.Sclose(space);
    if (status == LNS_OK && dataset != NULL)
        *dataset = set;
    else if (set >= 0 && lns_h5.Dclose(set) < 0 && status == LNS_OK)
        status = fail(file);
    return status;
}

static lns_status add_attribute(const lns_hdf5 *file, hid_t object, const char *name, hid_t file_type,
                                hid_t memory_type, const void *value) {
    const hid_t space = lns_h5.Screate(H5S_SCALAR);
    const hid_t attribute =
        space < 0 ? H5I_INVALID_HID : lns_h5.Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    lns_status status = LNS_OK;
    if (attribute < 0 || lns_h5.Awrite(attribute, memory_type, value) < 0)
        status = fail(file);
    if (attribute >= 0)
        lns_h5.Aclose(attribute);
    if (space >= 0)
        lns_h5.Sclose(space);
    return status;
}

static lns_status add_number(const lns_hdf5 *file, hid_t object, const char *name, double value) {
    return add_attribute(file, object, name, *lns_h5.T_IEEE_F64LE_g, *lns_h5.T_NATIVE_DOUBLE_g, &value);
}

/* Of variable length, which h5py gives as str. */
static lns_status add_text(const lns_hdf5 *file, hid_t object, const char *name, const char *text) {
    if (text == NULL)
        return LNS_OK;
    const hid_t type = lns_h5.Tcopy(*lns_h5.T_C_S1_g);
    lns_status status = LNS_OK;
    if (type < 0 || lns_h5.Tset_size(type, H5T_VARIABLE) < 0 || lns_h5.Tset_cset(type, H5T_CSET_UTF8) < 0)
        status = fail(file);
    if (status == LNS_OK)
        status = add_attribute(file, object, name, type, type, &text);
    if (type >= 0)
        lns_h5.Tclose(type);
    return status;
}

static lns_status add_floats(const lns_hdf5 *file, hid_t group, const char *name, int dimensions, const hsize_t *shape,
                             const float *data) {
    return add_array(file, group, name, dimensions, shape, *lns_h5.T_IEEE_F32LE_g, *lns_h5.T_NATIVE_FLOAT_g, data,
                     NULL);
}

static lns_status add_keypoints(const lns_hdf5 *file, hid_t group, const lns_features *features) {
    const hsize_t shape[2] = {features->count, 2};
    hid_t set = H5I_INVALID_HID;
    lns_status status = add_array(file, group, "keypoints", 2, shape, *lns_h5.T_IEEE_F32LE_g, *lns_h5.T_NATIVE_FLOAT_g,
                                  features->keypoints, &set);
    if (status != LNS_OK)
        return status;
    status = add_number(file, set, "uncertainty", DETECTION_NOISE * (features->scale_x + features->scale_y) / 2);
    if (lns_h5.Dclose(set) < 0 && status == LNS_OK)
        status = fail(file);
    return status;
}

/* hloc wants the numbers of one descriptor in a column. */
static lns_status add_descriptors(const lns_hdf5 *file, hid_t group, const lns_features *features) {
    const size_t n = features->count;
    float *columns = lns_alloc_array(n * LNS_DESCRIPTOR_SIZE, sizeof *columns);
    if (columns == NULL)
        return lns_fail_memory(n * LNS_DESCRIPTOR_SIZE * sizeof *columns);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < LNS_DESCRIPTOR_SIZE; k++)
            columns[k * n + i] = features->descriptors[i * LNS_DESCRIPTOR_SIZE + k];
    }
    const hsize_t shape[2] = {LNS_DESCRIPTOR_SIZE, n};
    const lns_status status = add_floats(file, group, "descriptors", 2, shape, columns);
    lns_free(columns);
    return status;
}

static lns_status add_features(const lns_hdf5 *file, hid_t group, const lns_features *features) {
    const hsize_t count = features->count;
    const hsize_t two = 2;
    const int64_t image_size[2] = {features->image_width, features->image_height};
    lns_status status = add_keypoints(file, group, features);
    if (status == LNS_OK)
        status = add_floats(file, group, "scores", 1, &count, features->scores);
    if (status == LNS_OK && features->descriptors != NULL)
        status = add_descriptors(file, group, features);
    if (status == LNS_OK)
        status = add_array(file, group, "image_size", 1, &two, *lns_h5.T_STD_I64LE_g, *lns_h5.T_NATIVE_INT64_g,
                           image_size, NULL);
    if (status == LNS_OK)
        status = add_text(file, group, "weights", features->weights);
    if (status == LNS_OK)
        status = add_text(file, group, "weights_license", features->license);
    return status;
}

/* Drops what HDF5 cannot hold or reads as a way through the tree: leading, doubled and final slashes and "." parts go,
 * and
 * ".." is refused, because dropping it would give two pictures one name. */
static lns_status clean_name(const char *name, char **cleaned) {
    char *out = lns_alloc(strlen(name) + 1);
    if (out == NULL)
        return lns_fail_memory(strlen(name) + 1);
    char *end = out;
    while (*name != '\0') {
        const size_t length = strcspn(name, "/");
        if (length == 2 && name[0] == '.' && name[1] == '.') {
            lns_free(out);
            return lns_fail(LNS_ERROR_INVALID_ARGUMENT,
                            "HDF5: the name '%s' has a part '..'; use a path below the pictures' folder", name);
        }
        if (length > 0 && !(length == 1 && name[0] == '.')) {
            if (end != out)
                *end++ = '/';
            memcpy(end, name, length);
            end += length;
        }
        name += length + (name[length] == '/');
    }
    *end = '\0';
    if (end == out) {
        lns_free(out);
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "HDF5: the name of a picture is empty");
    }
    *cleaned = out;
    return LNS_OK;
}

/* Is there anything at `name`, or does the way to it lead through the arrays of another picture? */
static lns_status check_free(const lns_hdf5 *file, char *name) {
    lns_status status = LNS_OK;
    for (char *slash = strchr(name, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        const htri_t exists = lns_h5.Lexists(file->file, name, H5P_DEFAULT);
        if (exists < 0)
            status = fail(file);
        else if (exists > 0 && slash == NULL)
            status = lns_fail(LNS_ERROR_INVALID_ARGUMENT, "HDF5: '%s' is in '%s' already; names must differ", name,
                              file->path);
        if (exists > 0 && slash != NULL) {
            const hid_t object = lns_h5.Oopen(file->file, name, H5P_DEFAULT);
            if (object < 0)
                status = fail(file);
            else if (lns_h5.Iget_type(object) != H5I_GROUP)
                status = lns_fail(LNS_ERROR_INVALID_ARGUMENT, "HDF5: '%s' in '%s' is an array of another picture", name,
                                  file->path);
            if (object >= 0)
                lns_h5.Oclose(object);
        }
        if (slash != NULL)
            *slash = '/';
        if (slash == NULL || exists <= 0 || status != LNS_OK)
            return status;
    }
}

static lns_status add_group(lns_hdf5 *file, char *name, const lns_features *features) {
    lns_status status = check_free(file, name);
    if (status != LNS_OK)
        return status;
    const hid_t links = lns_h5.Pcreate(*lns_h5.P_CLS_LINK_CREATE_ID_g);
    hid_t group = H5I_INVALID_HID;
    if (links >= 0 && lns_h5.Pset_create_intermediate_group(links, 1) >= 0 &&
        lns_h5.Pset_char_encoding(links, H5T_CSET_UTF8) >= 0)
        group = lns_h5.Gcreate2(file->file, name, links, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        status = fail(file);
    else
        status = add_features(file, group, features);
    if (group >= 0 && lns_h5.Gclose(group) < 0 && status == LNS_OK)
        status = fail(file);
    if (group >= 0 && status != LNS_OK)
        lns_h5.Ldelete(file->file, name, H5P_DEFAULT); /* no half picture in a file that is finished all the same */
    if (links >= 0)
        lns_h5.Pclose(links);
    return status;
}

lns_status lns_hdf5_add(lns_hdf5 *file, const char *name, const lns_features *features) {
    if (file == NULL || name == NULL || features == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_hdf5_add: file, name and features must not be NULL");
    char *cleaned = NULL;
    lns_status status = clean_name(name, &cleaned);
    if (status != LNS_OK)
        return status;
    quiet before;
    enter(&before);
    status = add_group(file, cleaned, features);
    if (status == LNS_OK && file->driver.error != 0)
        status = fail(file);
    leave(&before);
    lns_free(cleaned);
    return status;
}

static lns_status create(lns_hdf5 *file) {
    lns_status status = lns_h5_load();
    if (status != LNS_OK)
        return status;
    file->driver.descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->driver.descriptor < 0)
        return lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", file->path, strerror(errno));
    quiet before;
    enter(&before);
    file->file = lns_hdf5_driver_create(&file->driver, file->temporary);
    status = file->file < 0 ? fail(file) : LNS_OK;
    leave(&before);
    if (status != LNS_OK) {
        close(file->driver.descriptor);
        unlink(file->temporary);
    }
    return status;
}

static void destroy(lns_hdf5 **file) {
    lns_free((*file)->path);
    lns_free((*file)->temporary);
    lns_free(*file);
    *file = NULL;
}

lns_status lns_hdf5_create(const char *path, lns_hdf5 **file) {
    if (file != NULL)
        *file = NULL;
    if (path == NULL || file == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_hdf5_create: path and file must not be NULL");
    lns_hdf5 *made = lns_calloc(1, sizeof *made);
    if (made == NULL)
        return lns_fail_memory(sizeof *made);
    made->file = H5I_INVALID_HID;
    made->path = lns_strdup(path);
    made->temporary = lns_file_temporary_name(path);
    lns_status status;
    if (made->path == NULL || made->temporary == NULL)
        status = lns_fail_memory(strlen(path));
    else
        status = create(made);
    if (status != LNS_OK)
        destroy(&made);
    *file = made;
    return status;
}

static lns_status finish(lns_hdf5 *file) {
    quiet before;
    enter(&before);
    lns_status status = LNS_OK;
    if (lns_h5.Fclose(file->file) < 0 || file->driver.error != 0)
        status = fail(file);
    leave(&before);
    if (close(file->driver.descriptor) != 0 && status == LNS_OK)
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", file->path, strerror(errno));
    return status;
}

lns_status lns_hdf5_close(lns_hdf5 **file) {
    if (file == NULL || *file == NULL)
        return lns_fail(LNS_ERROR_INVALID_ARGUMENT, "lns_hdf5_close: file must not be NULL");
    lns_status status = finish(*file);
    if (status == LNS_OK && rename((*file)->temporary, (*file)->path) != 0)
        status = lns_fail(LNS_ERROR_IO, "cannot write '%s': %s", (*file)->path, strerror(errno));
    if (status != LNS_OK)
        unlink((*file)->temporary);
    destroy(file);
    return status;
}

void lns_hdf5_abandon(lns_hdf5 **file) {
    if (file == NULL || *file == NULL)
        return;
    (*file)->driver.error = ECANCELED; /* nothing more needs to be written */
    quiet before;
    enter(&before);
    lns_h5.Fclose((*file)->file);
    leave(&before);
    close((*file)->driver.descriptor);
    unlink((*file)->temporary);
    destroy(file);
}

#else

static lns_status no_hdf5(void) {
    return lns_fail(LNS_ERROR_UNSUPPORTED, "this build cannot write HDF5: it was made without the HDF5 library");
}

lns_status lns_hdf5_create(const char *path, lns_hdf5 **file) {
    (void)path;
    if (file != NULL)
        *file = NULL;
    return no_hdf5();
}

lns_status lns_hdf5_add(lns_hdf5 *file, const char *name, const lns_features *features) {
    (void)file;
    (void)name;
    (void)features;
    return no_hdf5();
}

lns_status lns_hdf5_close(lns_hdf5 **file) {
    if (file != NULL)
        *file = NULL;
    return no_hdf5();
}

void lns_hdf5_abandon(lns_hdf5 **file) {
    if (file != NULL)
        *file = NULL;
}

#endif
