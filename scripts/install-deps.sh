#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs and is not there yet, with apt (Debian, Ubuntu), dnf (Fedora) or brew (macOS).
# Does nothing, and needs no rights, when everything is there.
#
#   scripts/install-deps.sh [--python] [--test] [--browser]
#
#   --python     also what the Python package needs to be built
#   --test       also what the tests need, and that
#   --browser    also Chromium, for the tests of the page
. "$(dirname "$0")/common.sh"

with_python=no
with_tests=no
with_browser=no
for argument in "$@"; do
    case $argument in
        --python) with_python=yes ;;
        --test)
            with_python=yes
            with_tests=yes
            ;;
        --browser) with_browser=yes ;;
        *) die "unknown argument '$argument'; usage: scripts/install-deps.sh [--python] [--test] [--browser]" ;;
    esac
done

if command -v apt-get >/dev/null 2>&1; then
    manager=apt
elif command -v dnf >/dev/null 2>&1; then
    manager=dnf
elif command -v brew >/dev/null 2>&1; then
    manager=brew
else
    manager=none
fi

missing='' # packages to install
wanted=''  # what they are for
meson_is_new_enough=no

# need WHAT "APT PACKAGES" "DNF PACKAGES" "BREW PACKAGES" CHECK...
need() {
    local what=$1 apt=$2 dnf=$3 brew=$4
    shift 4
    "$@" >/dev/null 2>&1 && return 0
    wanted="$wanted $what"
    case $manager in
        apt) missing="$missing $apt" ;;
        dnf) missing="$missing $dnf" ;;
        brew) missing="$missing $brew" ;;
    esac
}

has_compiler() {
    command -v "${CC:-cc}" && printf '#include <stdio.h>\n' | "${CC:-cc}" -E -x c -
}
has_library() {
    pkg-config --exists "$@"
}
has_hdf5() {
    pkg-config --exists hdf5 || command -v h5cc
}
has_meson() {
    # Old releases of Ubuntu have a meson that is too old; it then comes from PyPI below.
    if find_meson; then
        meson_is_new_enough=yes
    else
        [ -x /usr/bin/meson ]
    fi
}
has_python_headers() {
    "$(find_python)" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h")).close()'
}
has_sanitizers() {
    # Only Fedora packs them apart from the compiler.
    [ $manager != dnf ] || printf 'int main(void) { return 0; }\n' | "${CC:-cc}" -fsanitize=address,undefined -x c - -o /dev/null
}

look() {
    missing=''
    wanted=''
    need compiler 'gcc libc6-dev' 'gcc' '' has_compiler
    need make make make make command -v make
    need pkg-config pkg-config pkgconf-pkg-config pkgconf command -v pkg-config
    need meson meson meson meson has_meson
    need ninja ninja-build ninja-build ninja find_ninja
    need python3 'python3 python3-venv' python3 python find_python
    need libjpeg libjpeg-dev libjpeg-turbo-devel jpeg-turbo has_library libjpeg
    need libwebp libwebp-dev libwebp-devel webp has_library libwebp
    need libtiff libtiff-dev libtiff-devel libtiff has_library libtiff-4
    need zlib zlib1g-dev zlib-devel zlib has_library zlib
    need libdeflate libdeflate-dev libdeflate-devel libdeflate has_library libdeflate
    need libcurl 'libcurl4-openssl-dev ca-certificates' libcurl-devel curl has_library libcurl
    need libmicrohttpd libmicrohttpd-dev libmicrohttpd-devel libmicrohttpd has_library libmicrohttpd
    need nettle nettle-dev nettle-devel nettle has_library nettle
    need hdf5 libhdf5-dev hdf5-devel hdf5 has_hdf5
    need cairo libcairo2-dev cairo-devel cairo has_library cairo
    if [ $with_python = yes ]; then
        need python-headers python3-dev python3-devel '' has_python_headers
    fi
    if [ $with_tests = yes ]; then
        need cmocka libcmocka-dev libcmocka-devel cmocka has_library cmocka
        need c++ g++ gcc-c++ '' command -v "${CXX:-c++}"
        need sanitizers gcc 'libasan libubsan' '' has_sanitizers
    fi
    if [ $with_browser = yes ]; then
        need chromium chromium chromium chromium find_chromium
    fi
}

install_packages() {
    local sudo=''
    if [ "$manager" != brew ] && [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 ||
            die "these packages are missing and only root can install them:$missing"
        sudo=sudo
    fi
    say "missing:$wanted"
    say "installing with $manager:$missing"
    # shellcheck disable=SC2086
    case $manager in
        apt)
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q &&
                $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing </dev/null
            ;;
        dnf) $sudo dnf install -y $missing </dev/null ;;
        brew) brew install $missing </dev/null ;;
    esac || die "$manager could not install:$missing"
}

look
if [ -n "$wanted" ]; then
    [ $manager != none ] || die "missing:$wanted; found none of apt-get, dnf and brew to install them with"
    [ -n "${missing// /}" ] || die "missing:$wanted; install the Xcode command line tools with 'xcode-select --install'"
    install_packages
    look
    [ -z "$wanted" ] || die "still missing after the installation:$wanted"
fi

if [ $meson_is_new_enough = no ]; then
    say "meson is older than $MESON_MINIMUM; installing a newer one in build-tools/"
    "$(find_python)" -m venv "$root/build-tools"
    "$root/build-tools/bin/pip" install -q --disable-pip-version-check 'meson==1.8.2' ||
        die "could not install meson $MESON_MINIMUM or newer with pip"
fi
