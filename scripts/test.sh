#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs every test: the C suite, the C suite with AddressSanitizer and UndefinedBehaviorSanitizer, the black-box
# tests in Python, and those of the Python package. The last line is "N passed, M failed" over all of them; the exit code
# is 0 only when M is 0.
. "$(dirname "$0")/common.sh"
cd "$root"

if [ -n "${LENSING_TEST_DATA:-}" ]; then
    LENSING_TEST_DATA=$(cd "$LENSING_TEST_DATA" && pwd) || die "LENSING_TEST_DATA is not a folder"
    export LENSING_TEST_DATA
fi

results=build/test-results
mkdir -p "$results"
rm -f "$results"/*

# run NAME REPORT COMMAND...: keeps the exit code and the report of one runner for the count at the end.
run() {
    local name=$1 report=$2 code=0
    shift 2
    say "$name"
    rm -f "$report"
    "$@" </dev/null || code=$?
    printf '%s\t%s\t%s\n' "$name" "$code" "$report" >>"$results/runners.tsv"
    return 0
}

c_tests() {
    scripts/build.sh "$@" && "$(find_meson)" test -C "$1" --no-rebuild --print-errorlogs --timeout-multiplier 10
}

# The tests with real weights compare with PyTorch, and are skipped where pip finds none. On Linux only the build for CPUs
# will do, which pip must be set up to find: the other brings gigabytes of GPU libraries. What is in build/venv already is
# taken as it is.
install_torch() {
    local torch=torch==2.13.0+cpu
    [ "$(uname -s)" != Darwin ] || torch=torch==2.13.0
    build/venv/bin/python -c 'import torch' 2>/dev/null && return 0
    say "installing PyTorch in build/venv"
    build/venv/bin/python -m pip install -qq --disable-pip-version-check --no-input --retries 1 $torch ||
        say 'SKIP: no PyTorch for this Python here; the tests that compare with it are skipped'
}

python_tests() {
    scripts/venv.sh build/venv tests/requirements.txt || return 1
    [ -z "${LENSING_TEST_DATA:-}" ] || install_torch
    ! find_chromium >/dev/null ||
        build/venv/bin/python -m pip install -qq --disable-pip-version-check --no-input \
            -r tests/server/requirements-browser.txt || return 1
    build/venv/bin/python -m pytest tests --ignore=tests/python -ra -p no:cacheprovider \
        --junitxml="$results/pytest.xml"
}

# In the environment of the tests before, with the wheel.
package_tests() {
    local wheel
    say 'building the wheel of the Python package'
    wheel=$(scripts/wheel.sh) || return 1
    build/venv/bin/python -m pip install -q --disable-pip-version-check --no-input --no-deps --force-reinstall \
        "$wheel" || return 1
    build/venv/bin/python -m pytest tests/python -ra -p no:cacheprovider --junitxml="$results/package.xml"
}

finish() {
    local python
    python=$(find_python) || die 'no Python found to count the results with'
    "$python" scripts/count_tests.py "$results/runners.tsv" | tee "$results/summary"
    return "${PIPESTATUS[0]}"
}

if ! scripts/install-deps.sh --test; then
    echo '0 passed, 1 failed'
    exit 1
fi
NINJA=$(find_ninja)
export NINJA
run 'C tests' build/meson-logs/testlog.json c_tests build
run 'C tests with sanitizers' build-asan/meson-logs/testlog.json c_tests build-asan \
    -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
run 'Python tests' "$results/pytest.xml" python_tests
if python_has_package; then
    run 'tests of the Python package' "$results/package.xml" package_tests
else
    say 'SKIP: this Python is older than 3.11; the Python package is not tested'
fi
finish
