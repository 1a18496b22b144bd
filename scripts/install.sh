#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and installs under a prefix; DESTDIR is put in front when set.
#
#   scripts/install.sh PREFIX
. "$(dirname "$0")/common.sh"

[ $# -eq 1 ] || die 'usage: scripts/install.sh PREFIX'
case $1 in
    /*) ;;
    *) die "the prefix must be an absolute path, not '$1'" ;;
esac
cd "$root"
scripts/build.sh build
meson=$(find_meson)
NINJA=$(find_ninja)
export NINJA
"$meson" configure build -Dprefix="$1"
"$meson" install -C build
