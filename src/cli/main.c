/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <lensing/lensing.h>

int main(void) {
    printf("lensing %s\n", lns_version());
    return 0;
}
