#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the speed and memory of an optimized build with other programs; nothing else should run at the same time.
#
#   scripts/bench.sh [WEIGHTS [OPTION OF bench/compare.py...]]      --peers: more programs, which are installed
#   scripts/bench.sh --server [WEIGHTS [OPTION OF bench/compare_server.py...]]
#
# Without WEIGHTS, or with an empty name, it is those inside the library.
. "$(dirname "$0")/common.sh"

comparison=bench/compare.py
requirements=bench/requirements.txt
venv=build/venv-bench
if [ "${1:-}" = --server ]; then
    comparison=bench/compare_server.py
    requirements=bench/peer_server/requirements.txt
    venv=build/venv-bench-server
    shift
fi
case " $* " in *" --peers "*) requirements=bench/requirements-peers.txt venv=build/venv-bench-peers ;; esac
weights=${1:-$root/models/lensing-superpoint-v1.safetensors}
[ $# -eq 0 ] || shift
[ -e "$weights" ] || die "no such file or folder: $weights"
weights=$(cd "$(dirname "$weights")" && pwd)/$(basename "$weights")
cd "$root"
scripts/install-deps.sh
scripts/build.sh build
scripts/venv.sh "$venv" "$requirements"
"$venv/bin/python" "$comparison" --build build --weights "$weights" "$@"
