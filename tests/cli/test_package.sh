#!/bin/sh
# Installs the build into an empty prefix, moves it, builds a C and a C++ program against it in two
# ways, pkg-config and CMake, with the shared library and with the archive, and looks at what was
# installed and what the library exports. At last what was installed is taken away again.
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

# The static library has no other global names, so that it links with whatever a program brings along.
nm -g --defined-only "$libdir/librfexec.a" | sed -n 's/.* [A-Z] //p' | LC_ALL=C sort >"$work/archived"
diff "$source/rfexec/api/exported_symbols.txt" "$work/archived" || {
    echo "librfexec.a has other names than those of rfexec/api/exported_symbols.txt"
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

# With the archive: a copy of the tree without the shared library.
cp -R "$prefix" "$work/archive"
rm "$work/archive/${libdir#"$prefix"/}"/librfexec.so*
static=$work/archive/${libdir#"$prefix"/}/pkgconfig
# shellcheck disable=SC2046,SC2086
PKG_CONFIG_PATH=$static ${CC:-cc} -std=c11 $warnings $flags user.c \
    $(PKG_CONFIG_PATH=$static pkg-config --static --cflags --libs rfexec) -o static_by_pkg_config
./static_by_pkg_config | diff said_c -
if ldd ./static_by_pkg_config | grep librfexec; then
    echo "the static program needs the shared library"
    exit 1
fi

cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" -DWITH_CXX=$with_cxx \
    ${cxx:+-DCMAKE_CXX_COMPILER="$cxx"} -DCMAKE_CXX_FLAGS="$flags" >cmake.log
cmake --build built >>cmake.log
for user in user user_static; do
    ./built/$user | diff said_c -
    [ "$with_cxx" = OFF ] || ./built/${user}_cxx | diff said_c -
done

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

# Man page and completions, which cross builds may lack.
if [ -d "$build/documents" ]; then
    for file in man/man1/rfexec.1 bash-completion/completions/rfexec zsh/site-functions/_rfexec \
        fish/vendor_completions.d/rfexec.fish; do
        [ -s "$prefix/share/$file" ] || { echo "not installed: share/$file"; exit 1; }
    done
fi
if [ -x "$build/rfexec-mpi" ]; then # where MPI was found
    [ "$("$prefix/bin/rfexec-mpi" --version)" = "rfexec-mpi $version" ] || { echo "no rfexec-mpi"; exit 1; }
    [ ! -d "$build/documents" ] || [ -s "$prefix/share/man/man1/rfexec-mpi.1" ] ||
        { echo "no man page of rfexec-mpi"; exit 1; }
fi
# What is installed can be taken away.
cmake --install "$build" --prefix "$work/second" >>"$work/install.log"
[ -n "$(find "$work/second" -type f)" ] || { echo "nothing installed"; exit 1; }
cmake -DBUILD="$build" -P "$source/tools/cmake/rfx_uninstall.cmake" >>"$work/install.log" 2>&1
left=$(find "$work/second" ! -type d -o -name rfexec)
[ -z "$left" ] || { echo "left after uninstall: $left"; exit 1; }
echo "package: pkg-config and CMake programs run, shared and static"
