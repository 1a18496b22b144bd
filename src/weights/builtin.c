/* SPDX-License-Identifier: Apache-2.0 */
#include "weights/builtin.h"

#include "lensing_config.h"

int lns_builtin_weights_find(lns_builtin_weights *builtin) {
    *builtin = (lns_builtin_weights){LNS_BUILTIN_WEIGHTS, lns_builtin_weights_file, lns_builtin_weights_file_size};
    return 1;
}
