#!/bin/sh
# Installs the Debian packages that rfexec needs to build and to draw charts, those that are missing
# only. Needs root or sudo when something is missing; does nothing otherwise. Arguments are further
# packages.
set -eu

packages="gcc libc6-dev make cmake pkg-config libopenblas-openmp-dev libpng-dev
    libjpeg62-turbo-dev libtiff-dev libopenjp2-7-dev libwebp7 libstb-dev libjansson-dev libxxhash-dev libcmocka-dev
    nanopb libnanopb-dev libonnx-dev python3-venv gnuplot-nox $*"

missing=""
for package in $packages; do
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    # once for each architecture that it is installed for
    [ "${status#install ok installed}" != "$status" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif command -v sudo >/dev/null 2>&1; then
    as_root="sudo"
else
    echo "missing packages:$missing" >&2
    echo "run as root: apt-get install --no-install-recommends$missing" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing:$missing" >&2
# $as_root and $missing are lists of words on purpose.
# shellcheck disable=SC2086
if ! { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "the packages could not be installed; the reason is above" >&2
    exit 1
fi
