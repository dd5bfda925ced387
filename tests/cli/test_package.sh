#!/bin/sh
# Installs the build into an empty prefix, moves it, and builds a program against it in two ways:
# pkg-config and CMake. usage: test_package.sh BUILD_DIR SOURCE_DIR WORK_DIR [CFLAGS]
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
cp "$source/tests/cli/package/user.c" "$source/tests/cli/package/CMakeLists.txt" "$work/elsewhere"
cd "$work/elsewhere"

# shellcheck disable=SC2046,SC2086
${CC:-cc} -std=c11 -Wall -Werror $flags user.c $(pkg-config --cflags --libs rfexec) -o by_pkg_config
./by_pkg_config

cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" >cmake.log
cmake --build built >>cmake.log
./built/user

[ "$("$prefix/bin/rfexec" version)" = "rfexec 0.1.0" ]
for header in layers/graph.h rf_analysis/analysis.h tiler/plan.h rfexec/session.h rfexec/rfexec.h; do
    [ -f "$prefix/include/rfexec/$header" ] || { echo "missing $header"; exit 1; }
done
# An empty element of a run path makes the loader search the current folder.
for file in "$build/rfexec" "$build/librfexec.so" "$prefix/bin/rfexec" "$libdir/librfexec.so"; do
    path=$(readelf -d "$file" | sed -n 's/.*Library r[un]*path: \[\(.*\)\]$/\1/p')
    case ":$path:" in
        ::) ;; # none at all
        *::*) echo "$file: empty element in run path '$path'"; exit 1 ;;
    esac
done
echo "package: pkg-config and CMake programs run"
