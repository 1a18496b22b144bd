#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs bench/benchmark.py, and keeps what it prints in run.log beside this file. The exit status is that of the benchmark.
#
#   bench/run_benchmark.sh [OPTION OF bench/benchmark.py...]
#
# PYTHON names the Python to use (default python3). SP_N_ITER is the number of timed runs (default 10). DEVICE_ID and
# TT_METAL_DIR, which the script of this name for Tenstorrent cards needs, have no meaning here.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd) || exit 1
"${PYTHON:-python3}" "$here/benchmark.py" "$@" 2>&1 | tee "$here/run.log"
exit "${PIPESTATUS[0]}"
