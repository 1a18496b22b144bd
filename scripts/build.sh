#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures (the first time) and builds.
#
#   scripts/build.sh FOLDER [MESON OPTION...]
. "$(dirname "$0")/common.sh"

[ $# -ge 1 ] || die "usage: scripts/build.sh FOLDER [MESON OPTION...]"
folder=$root/$1
shift
meson=$(find_meson) || die "no meson $MESON_MINIMUM or newer found; run scripts/install-deps.sh"
NINJA=$(find_ninja) || die "no ninja found; run scripts/install-deps.sh"
export NINJA

[ -e "$folder/build.ninja" ] || "$meson" setup "$folder" "$root" "$@"
"$NINJA" -C "$folder"
