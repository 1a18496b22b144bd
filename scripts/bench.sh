#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the speed and memory of an optimized build with other programs; nothing else should run at the same time.
#
#   scripts/bench.sh WEIGHTS [OPTION OF bench/compare.py...]
. "$(dirname "$0")/common.sh"

[ $# -ge 1 ] && [ -n "$1" ] || die "no weights given; use: make bench WEIGHTS=model.safetensors"
weights=$1
shift
[ -e "$weights" ] || die "no such file or folder: $weights"
weights=$(cd "$(dirname "$weights")" && pwd)/$(basename "$weights")
cd "$root"
scripts/install-deps.sh
scripts/build.sh build
scripts/venv.sh build/venv-bench bench/requirements.txt
build/venv-bench/bin/python bench/compare.py --build build --weights "$weights" "$@"
