# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Shared by the scripts of this folder; sourced, not run. Written for bash 3.2, which macOS has.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MESON_MINIMUM=1.0.0
PYTHON_MINIMUM=3.10

say() {
    printf '==> %s\n' "$*"
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# version_at_least 1.10.2 1.9: compares up to three numbers, ignores what follows them.
version_at_least() {
    local IFS=. have want i
    # shellcheck disable=SC2206
    have=(${1%%[!0-9.]*} 0 0 0)
    # shellcheck disable=SC2206
    want=($2 0 0 0)
    for i in 0 1 2; do
        [ "${have[$i]}" -gt "${want[$i]}" ] && return 0
        [ "${have[$i]}" -lt "${want[$i]}" ] && return 1
    done
    return 0
}

# The tools of the system come before PATH, where a version manager may have put stand-ins that fail when called.
candidates() {
    printf '%s\n' "/usr/bin/$1" "/opt/homebrew/bin/$1" "/usr/local/bin/$1"
    command -v "$1" || true
}

# Prints a meson that is new enough: $MESON, one of the system, one on PATH, or what install-deps.sh put in build-tools/.
find_meson() {
    local tool version
    while read -r tool; do
        [ -n "$tool" ] && [ -x "$tool" ] || continue
        version=$("$tool" --version 2>/dev/null </dev/null) || continue
        if version_at_least "$version" "$MESON_MINIMUM"; then
            printf '%s\n' "$tool"
            return 0
        fi
    done <<EOF
${MESON:-}
$(candidates meson)
$root/build-tools/bin/meson
EOF
    return 1
}

find_ninja() {
    local tool
    while read -r tool; do
        [ -n "$tool" ] && [ -x "$tool" ] || continue
        if "$tool" --version >/dev/null 2>&1 </dev/null; then
            printf '%s\n' "$tool"
            return 0
        fi
    done <<EOF
${NINJA:-}
$(candidates ninja)
$(candidates ninja-build)
EOF
    return 1
}

# Whether the Python that find_python prints is one that the Python package is for.
python_has_package() {
    "$(find_python)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'
}

# Prints a Python that can make virtual environments.
find_python() {
    local tool version
    while read -r tool; do
        [ -n "$tool" ] && [ -x "$tool" ] || continue
        version=$("$tool" -c 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null) ||
            continue
        if version_at_least "$version" "$PYTHON_MINIMUM"; then
            printf '%s\n' "$tool"
            return 0
        fi
    done <<EOF
${PYTHON:-}
$(candidates python3)
EOF
    return 1
}

# Prints a Chromium for the tests of the page.
find_chromium() {
    printf '%s\n' "${LENSING_CHROMIUM:-}" | grep . || command -v chromium || command -v chromium-browser || command -v google-chrome
}

# Homebrew's folders are not on the compiler's search path.
if [ "$(uname -s)" = Darwin ] && command -v brew >/dev/null 2>&1; then
    brew_prefix=$(brew --prefix)
    export CPATH="$brew_prefix/include${CPATH:+:$CPATH}"
    export LIBRARY_PATH="$brew_prefix/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
fi
