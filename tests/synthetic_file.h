/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic weights as a safetensors file. */
#ifndef LENSING_TESTS_SYNTHETIC_FILE_H
#define LENSING_TESTS_SYNTHETIC_FILE_H

/* Returns 0 when the file is complete. */
int synthetic_file_write(const char *path);

/* Fixtures of a group of tests: the file is at synthetic_file_path while they run. They return 0 on success. */
extern char synthetic_file_path[64];
int synthetic_file_set_up(void **state);
int synthetic_file_tear_down(void **state);

#endif
