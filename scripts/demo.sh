#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and shows keypoints and matches on the example pictures.
#
#   scripts/demo.sh [WEIGHTS]     WEIGHTS: a folder, a .safetensors file, or a repository id in the Hugging Face cache;
#                                 those inside the library by default
. "$(dirname "$0")/common.sh"

weights=${1:-}
if [ -n "$weights" ] && [ -e "$weights" ]; then
    weights=$(cd "$(dirname "$weights")" && pwd)/$(basename "$weights")
fi
cd "$root"
scripts/install-deps.sh
scripts/build.sh build

first=examples/scene_1.jpg
second=examples/scene_2.jpg
set -- ${weights:+--weights "$weights"}
mkdir -p demo
say "keypoints of $first"
build/lensing detect "$first" "$@" --output demo/scene_1.json --draw demo/scene_1.png
say "matches between $first and $second"
build/lensing match "$first" "$second" "$@" --output demo/matches.json --draw demo/matches.png

say 'done; look at'
printf '    %s\n' \
    'demo/scene_1.png    the picture with its keypoints' \
    'demo/scene_1.json   keypoints and scores' \
    'demo/matches.png    both pictures with their matches' \
    'demo/matches.json   the matches'
