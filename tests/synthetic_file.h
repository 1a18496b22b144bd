/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic weights as a safetensors file. */
#ifndef LENSING_TESTS_SYNTHETIC_FILE_H
#define LENSING_TESTS_SYNTHETIC_FILE_H

/* Returns 0 when the file is complete. */
int synthetic_file_write(const char *path);

#endif
