#!/bin/sh
# Makes the Debian packages and looks into them: what each holds and depends on, and whether the
# program and what is built against the library run from them. tests/acceptance/packages.sh installs
# them in a fresh system.
# usage: test_debs.sh BUILD_DIR SOURCE_DIR WORK_DIR; exit code 77: there is no dpkg
set -eu
build=$1 source=$2 work=$3
for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "SKIPPED: no $tool"; exit 77; }
done
[ -d "$build/documents" ] || { echo "SKIPPED: a cross build, without man page"; exit 77; }
rm -rf "$work"
mkdir -p "$work/root"

fail() {
    echo "$*"
    exit 1
}

# Ninja has no target that builds everything first, so that nothing is built while tests run.
(cd "$build" && cpack -D CPACK_CMAKE_GENERATOR=Ninja -B "$work") >"$work/cpack.log" 2>&1 ||
    fail "cpack: $(tail "$work/cpack.log")"
contact=$(sed -n 's/^set(CPACK_PACKAGE_CONTACT "\(.*\)")$/\1/p' "$build/CPackConfig.cmake")
case $contact in [!\ ]*' <'*@*.*'>') ;; *) fail "no name and address: '$contact'" ;; esac
version=$("$build/rfexec" version | sed 's/rfexec //')
short=${version%.*}

# package, what it depends on, its files
check() {
    package=$1
    deb=$(echo "$work/$package"_"$version"_*.deb)
    [ -f "$deb" ] || fail "no $package of version $version"
    maintainer=$(dpkg-deb -f "$deb" Maintainer)
    [ "$maintainer" = "$contact" ] || fail "$package is answered for by $maintainer, not by $contact"
    depends=$(dpkg-deb -f "$deb" Depends)
    for word in $2; do
        case $depends in *"$word"*) ;; *) fail "$package does not depend on $word: $depends" ;; esac
    done
    dpkg-deb -c "$deb" | sed -n '/\/$/!s/^.* \.\/usr\/\([^ ]*\).*/\1/p' | LC_ALL=C sort >"$work/files"
    printf '%s\n' $3 | LC_ALL=C sort | diff - "$work/files" || fail "$package: other files"
    dpkg-deb -x "$deb" "$work/root"
    [ -s "$work/root/usr/share/doc/$package/copyright" ] || fail "$package: no copyright"
}

loaded="libopenblas0-openmp libtiff6 libopenjp2-7 libwebp7"
linked="libc6 libgomp1 libjansson4 libjpeg62-turbo libpng16-16 zlib1g"
check rfexec "$loaded $linked" "bin/rfexec share/bash-completion/completions/rfexec
    share/doc/rfexec/CHANGELOG.md share/doc/rfexec/copyright
    share/fish/vendor_completions.d/rfexec.fish share/man/man1/rfexec.1
    share/zsh/vendor-completions/_rfexec"
check "librfexec$short" "$loaded $linked" "lib/librfexec.so.$short lib/librfexec.so.$version
    share/doc/librfexec$short/copyright"
check librfexec-dev "librfexec$short libpng-dev libjpeg-dev libjansson-dev" "
    include/rfexec/rfexec.h lib/cmake/rfexec/rfexec-config-release.cmake
    lib/cmake/rfexec/rfexec-config-version.cmake lib/cmake/rfexec/rfexec-config.cmake
    lib/librfexec.a lib/librfexec.so lib/pkgconfig/rfexec.pc share/doc/librfexec-dev/copyright"
if [ -x "$build/rfexec-mpi" ]; then # where MPI was found
    check rfexec-mpi "$loaded $linked mpi" "bin/rfexec-mpi share/doc/rfexec-mpi/copyright
        share/man/man1/rfexec-mpi.1"
fi
if grep -r -l -e "$build" -e "$source" "$work/root/usr/lib/cmake" "$work/root/usr/lib/pkgconfig"; then
    fail "the files above name the build's folders"
fi

# What runs from them gives the same bits as the build.
hash_of() {
    "$1" run fsrcnn synthetic:40x50 --threads 1 | sed -n 's/.*hash //p'
}
hash=$(hash_of "$work/root/usr/bin/rfexec")
[ -n "$hash" ] || fail "the packaged program says no hash"
[ "$hash" = "$(hash_of "$build/rfexec")" ] || fail "the packaged program gives other bits"
PKG_CONFIG_PATH=$work/root/usr/lib/pkgconfig LD_LIBRARY_PATH=$work/root/usr/lib
export PKG_CONFIG_PATH LD_LIBRARY_PATH
# shellcheck disable=SC2046
${CC:-cc} -std=c11 "$source/tests/cli/package/user.c" $(pkg-config --cflags --libs rfexec) \
    -o "$work/user"
"$work/user"
echo "packages: $(ls "$work" | grep -c '\.deb$') packages hold what they should"
