#!/bin/sh
# The sdist and the wheel (tools/scripts/wheel.sh), and the package's tests from the wheel in a fresh
# Debian 12 with nothing but Python: no library of those that it needs, no compiler. The program that
# results are compared with lies there in a folder of its own, with its libraries, which nothing else
# sees. Needs root, PyPI, Debian's mirror, debootstrap and 1 GiB on the disk.
# usage: wheel.sh BUILD_DIR WORK_DIR [MIRROR]; exit code 77, with words: not all of that is there
set -eu
build=$(realpath "$1") work=$2 mirror=${3:-http://deb.debian.org/debian}
source=$(realpath "$(dirname "$0")/../..")
mkdir -p "$work"
work=$(realpath "$work")
root=$work/root
trap 'umount "$root/proc" 2>/dev/null || true' EXIT

fail() {
    echo "wheel: $*" >&2
    exit 1
}

inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"
}

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "failed: $*"; }
}

skip() {
    echo "SKIPPED: the wheel was not tested: $*"
    exit 77
}

[ "$(id -u)" -eq 0 ] || skip "chroot needs root"
command -v debootstrap >/dev/null || skip "no debootstrap"
sh "$source/tools/scripts/wheel.sh" "$work"
wheel=$(echo "$work"/rfexec-*.whl)

# What a wheel must not bring: code for other processors, paths of the machine that built it.
rm -rf "$work/look"
mkdir "$work/look"
python3 -m zipfile -e "$wheel" "$work/look"
find "$work/look" -name '*.so*' -type f | while read -r file; do
    readelf -h "$file" | sed -n 's/ *Machine: *//p'
    if grep -q -a -F -e "$work" -e "$source" "$file"; then fail "$file names folders of the build"; fi
done | LC_ALL=C sort -u >"$work/machines"
[ "$(wc -l <"$work/machines")" -eq 1 ] || fail "of several processors: $(cat "$work/machines")"
for name in LICENSE NOTICE bundled/libgomp1 bundled/libopenblas0-openmp; do
    [ -s "$(echo "$work"/look/rfexec-*.dist-info)/licenses/$name" ] || fail "no licence $name"
done

if [ ! -x "$root/usr/bin/python3" ]; then
    rm -rf "$root"
    quietly debootstrap --variant=minbase --include=python3,python3-venv bookworm "$root" "$mirror"
fi
[ -e "$root/proc/self" ] || mount -t proc proc "$root/proc"
for name in gomp openblas tiff jansson png16 jpeg; do
    found=$(find "$root/usr/lib" -name "lib$name.so*" -not -path '*/site-packages/*')
    [ -z "$found" ] || fail "the fresh system has $found"
done
if inside sh -c 'command -v cc gcc cmake'; then fail "the fresh system has a compiler"; fi

# numpy and what the tests need; the wheel last, by itself.
grep -v scikit "$source/python/tests/requirements.txt" >"$work/requirements"
if ! cmp -s "$work/requirements" "$work/wheels/complete"; then
    rm -rf "$work/wheels"
    "$work/work/venv/bin/pip" download --quiet --disable-pip-version-check --only-binary :all: \
        --python-version 3.11 --dest "$work/wheels" -r "$work/requirements" ||
        skip "its tests' packages cannot be had from PyPI"
    cp "$work/requirements" "$work/wheels/complete"
fi
rm -rf "$root/tmp/wheels" "$root/tmp/tree" "$root/opt/program" "$root/opt/venv"
mkdir -p "$root/tmp/tree/rfexec" "$root/opt/program"
cp -R "$work/wheels" "$root/tmp/wheels"
cp "$wheel" "$work/requirements" "$root/tmp/wheels"
inside python3 -m venv /opt/venv
quietly inside /opt/venv/bin/pip install --no-index --find-links /tmp/wheels \
    -r /tmp/wheels/requirements "/tmp/wheels/${wheel##*/}"

# The program and what it is linked with or loads.
cp "$build/rfexec" "$root/opt/program"
place=/usr/lib/$(${CC:-cc} -print-multiarch)
cp -L "$place/openblas-openmp/libopenblas.so.0" "$place/libtiff.so.6" "$root/opt/program"
ldd "$build/rfexec" "$root"/opt/program/lib* | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' |
    LC_ALL=C sort -u | while read -r file; do
    case $file in */libc.so* | */libm.so*) ;; *) cp -L "$file" "$root/opt/program" ;; esac
done
printf '#!/bin/sh\nLD_LIBRARY_PATH=/opt/program exec /opt/program/rfexec "$@"\n' \
    >"$root/opt/program/run"
chmod +x "$root/opt/program/run"
for part in README.md data docs examples python; do cp -R "$source/$part" "$root/tmp/tree"; done
cp -R "$source/rfexec/include" "$root/tmp/tree/rfexec"

# Pictures, TIFF among them, whose library is loaded from the wheel.
inside sh -ec 'cd /tmp
    for type in tif png npy; do
        /opt/program/run run fsrcnn synthetic:20x30 -o "picture.$type" >said
    done
    /opt/venv/bin/python -c "
import numpy as np, rfexec
for kind in \"tif\", \"png\", \"npy\":
    rows, columns, channels = rfexec.picture_size(\"picture.\" + kind)
    net = rfexec.open(\"squeezenet1_1\", (rows, columns))
    maps = net.run(\"picture.\" + kind, memory=\"32MiB\")
    print(kind, rows, columns, channels, next(iter(maps.values())).shape)
"' || fail "pictures of the program"
inside sh -c 'cd /tmp && RFEXEC_PROGRAM=/opt/program/run /opt/venv/bin/python -m pytest -q -rs \
    -p no:cacheprovider /tmp/tree/python/tests' || fail "the package's tests"
