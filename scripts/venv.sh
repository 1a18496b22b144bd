#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/venv, the Python of the tests, with the packages of tests/requirements.txt; nothing when it is up to date.
# With LENSING_TEST_DATA also PyTorch, which the tests with real weights compare with; they are skipped without it.
. "$(dirname "$0")/common.sh"

venv=$root/build/venv
requirements=$root/tests/requirements.txt
TORCH=2.13.0

pip_install() {
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input "$@" </dev/null
}

if ! cmp -s "$requirements" "$venv/requirements.txt"; then
    say 'installing the Python packages of the tests in build/venv'
    python=$(find_python) || die "no Python $PYTHON_MINIMUM or newer with venv found; run scripts/install-deps.sh"
    "$python" -m venv --clear "$venv"
    pip_install -r "$requirements" || die 'pip could not install tests/requirements.txt'
    cp "$requirements" "$venv/requirements.txt"
fi

if [ -n "${LENSING_TEST_DATA:-}" ] && ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
    say "installing PyTorch $TORCH (CPU) in build/venv"
    if [ "$(uname -s)" = Linux ]; then
        # The build for CPUs: the one of PyPI brings gigabytes of GPU libraries.
        pip_install --retries 1 --extra-index-url https://download.pytorch.org/whl/cpu "torch==$TORCH+cpu"
    else
        pip_install --retries 1 "torch==$TORCH"
    fi || say "SKIP: no PyTorch $TORCH for this Python here; tests that compare with it are skipped"
fi
