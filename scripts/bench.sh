#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the speed with other programs: see bench/compare.py. The weights come from $WEIGHTS (a safetensors file), else
# from $LENSING_TEST_DATA/weights.
set -euo pipefail
cd "$(dirname "$0")/.."
weights=${WEIGHTS:-${LENSING_TEST_DATA:+$LENSING_TEST_DATA/weights/superpoint_magicleap_v1.safetensors}}
if [ -z "$weights" ]; then
    echo "make bench: name a safetensors file: make bench WEIGHTS=FILE" >&2
    exit 2
fi
scripts/build.sh build
[ -d build/venv-bench ] || python3 -m venv build/venv-bench
build/venv-bench/bin/pip install --quiet -r bench/requirements.txt
exec build/venv-bench/bin/python bench/compare.py --build build --weights "$weights" "$@"
