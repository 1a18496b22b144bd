#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a virtual environment with the packages of a requirements file; does nothing when it is up to date.
#
#   scripts/venv.sh FOLDER REQUIREMENTS
. "$(dirname "$0")/common.sh"

[ $# -eq 2 ] || die 'usage: scripts/venv.sh FOLDER REQUIREMENTS'
venv=$1
requirements=$2
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
    say "installing the Python packages of $requirements in $venv"
    python=$(find_python) || die "no Python $PYTHON_MINIMUM or newer with venv found; run scripts/install-deps.sh"
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input -r "$requirements" </dev/null ||
        die "pip could not install $requirements"
    cp "$requirements" "$venv/requirements.txt"
fi
