#!/bin/sh
# Installs the build into an empty prefix, moves it, builds a C and a C++ program against it in two
# ways, pkg-config and CMake, and looks at what was installed and what the library exports.
# usage: test_package.sh BUILD_DIR SOURCE_DIR WORK_DIR [CFLAGS]
set -eu
build=$1 source=$2 work=$3 flags=${4:-}
rm -rf "$work"
mkdir -p "$work/elsewhere"
cmake --install "$build" --prefix "$work/installed" >"$work/install.log"
mv "$work/installed" "$work/moved"
prefix=$work/moved
pc=$(find "$prefix" -name rfexec.pc)
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
LD_LIBRARY_PATH=$libdir
export PKG_CONFIG_PATH LD_LIBRARY_PATH

# One header, and the library exports the functions that it declares, no more and no fewer.
headers=$(cd "$prefix/include" && find . -type f)
[ "$headers" = ./rfexec/rfexec.h ] || { echo "installed headers: $headers"; exit 1; }
sed -n 's/^.*RFX_API .*[ *]\(rfx_[a-z_]*\)(.*/\1/p' "$prefix/include/rfexec/rfexec.h" |
    LC_ALL=C sort >"$work/declared"
nm -D --defined-only "$libdir/librfexec.so" | sed 's/.* //' | LC_ALL=C sort >"$work/exported"
[ -s "$work/declared" ] || { echo "no declarations found"; exit 1; }
diff "$work/declared" "$work/exported" || { echo "declared and exported functions differ"; exit 1; }
# And that is the list that is written down: a function that goes breaks programs that are built.
diff "$source/rfexec/api/exported_symbols.txt" "$work/exported" || {
    echo "the exported functions are not those of rfexec/api/exported_symbols.txt"
    exit 1
}

cp "$source/tests/cli/package/"* "$work/elsewhere"
cd "$work/elsewhere"
cxx=
for c in ${CXX:-} c++ g++ clang++; do
    if command -v "$c" >/dev/null; then cxx=$c; break; fi
done

# Any program sees the header's declarations alone, and as strict C11 and C++11.
warnings="-Wall -Wextra -Wpedantic -Werror"
# shellcheck disable=SC2046,SC2086
${CC:-cc} -std=c11 $warnings $flags user.c $(pkg-config --cflags --libs rfexec) -o by_pkg_config
./by_pkg_config | tee said_c
if [ -n "$cxx" ]; then
    # shellcheck disable=SC2046,SC2086
    "$cxx" -std=c++11 $warnings $flags user.cc $(pkg-config --cflags --libs rfexec) \
        -o by_pkg_config_cxx
    ./by_pkg_config_cxx >said_cxx
    diff said_c said_cxx || { echo "the C++ program says something else"; exit 1; }
    with_cxx=ON
else
    echo "SKIPPED: no C++ compiler found, so no C++ program was built"
    with_cxx=OFF
fi

cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" -DWITH_CXX=$with_cxx \
    ${cxx:+-DCMAKE_CXX_COMPILER="$cxx"} -DCMAKE_CXX_FLAGS="$flags" >cmake.log
cmake --build built >>cmake.log
./built/user | diff said_c -
[ "$with_cxx" = OFF ] || ./built/user_cxx | diff said_c -

# Header, library, program and both packages are of one version.
version=$(pkg-config --modversion rfexec)
[ "$("$prefix/bin/rfexec" version)" = "rfexec $version" ]
[ "$(head -n 1 said_c)" = "rfexec $version, header $version" ]
# An empty element of a run path makes the loader search the current folder.
for file in "$build/rfexec" "$build/librfexec.so" "$prefix/bin/rfexec" "$libdir/librfexec.so"; do
    path=$(readelf -d "$file" | sed -n 's/.*Library r[un]*path: \[\(.*\)\]$/\1/p')
    case ":$path:" in
        ::) ;; # none at all
        *::*) echo "$file: empty element in run path '$path'"; exit 1 ;;
    esac
done
echo "package: pkg-config and CMake programs run"
