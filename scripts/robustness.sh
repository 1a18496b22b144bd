#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long run of tests/robustness: LENSING_MUTATIONS damaged pictures (default 20,000) through the sanitizer build.
. "$(dirname "$0")/common.sh"
cd "$root"

scripts/install-deps.sh --test
scripts/build.sh build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
scripts/venv.sh build/venv tests/requirements.txt
LENSING_MUTATIONS=${LENSING_MUTATIONS:-20000} \
    build/venv/bin/python -m pytest tests/robustness -s -ra -p no:cacheprovider
