/* SPDX-License-Identifier: Apache-2.0 */
/* What libjpeg-turbo alone takes to decode a JPEG in memory to RGB, the yardstick for reading pictures.
 * usage: jpeg_decode FILE; then one line "MILLISECONDS" on stdout for every line on stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <jpeglib.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void decode(const unsigned char *bytes, unsigned long size) {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    decoder.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decoder);
    jpeg_mem_src(&decoder, bytes, size);
    jpeg_read_header(&decoder, TRUE);
    jpeg_start_decompress(&decoder);
    const size_t row_size = (size_t)decoder.output_width * (size_t)decoder.output_components;
    JSAMPLE *pixels = malloc(row_size * decoder.output_height);
    if (pixels == NULL)
        exit(1);
    while (decoder.output_scanline < decoder.output_height) {
        JSAMPROW row = pixels + row_size * decoder.output_scanline;
        jpeg_read_scanlines(&decoder, &row, 1);
    }
    jpeg_finish_decompress(&decoder);
    jpeg_destroy_decompress(&decoder);
    free(pixels);
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: jpeg_decode FILE\n");
        return 2;
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(size > 0 ? (size_t)size : 1);
    if (bytes == NULL || size <= 0 || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        return 1;
    fclose(file);
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        const double start = now_ms();
        decode(bytes, (unsigned long)size);
        printf("%.4f\n", now_ms() - start);
        fflush(stdout);
    }
    free(bytes);
    return 0;
}
