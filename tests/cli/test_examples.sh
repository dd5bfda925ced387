#!/bin/sh
# Builds the examples in C against the library of the build, runs them, and holds what they write to
# what the program writes, or to each other in other budgets.
# usage: test_examples.sh BUILD_DIR SOURCE_DIR WORK_DIR [CFLAGS]
set -eu
build=$1 source=$2 work=$3 flags=${4:-}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
for name in file_to_map source_and_sink; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror $flags "$source/examples/$name.c" \
        -I"$source/rfexec/include" "$build/librfexec.so" -Wl,-rpath,"$build" -o "$name"
done
net=$source/data/defect_net.onnx
refused() { # CODE COMMAND...: it ends with that code, and says why
    wanted=$1
    shift
    code=0
    "$@" 2>said || code=$?
    [ "$code" -eq "$wanted" ] || { echo "$*: exit code $code, wanted $wanted"; exit 1; }
    [ -s said ] || { echo "$*: no reason given"; exit 1; }
}

# The same values as the program's, whose header has another length.
"$build/rfexec" run "$net" synthetic:300x260 -o program.npy >/dev/null
./file_to_map "$net" synthetic:300x260 example.npy 50000000
values=$((4 * 3 * 38 * 33))
tail -c $values program.npy >program.values
tail -c $values example.npy >example.values
cmp program.values example.values
[ "$(head -c 6 example.npy | tail -c 5)" = NUMPY ]
[ "$(wc -c <example.npy)" -eq $((320 + values)) ]
refused 4 ./file_to_map "$net" synthetic:300x260 example.npy 1000000
refused 3 ./file_to_map "$net" no_such.png example.npy 50000000

# The same picture in other budgets; the smaller is less than the image.
./source_and_sink "$net" 1500 1200 roomy.pgm 0
./source_and_sink "$net" 1500 1200 tight.pgm 20000000
cmp roomy.pgm tight.pgm
[ "$(head -n 2 tight.pgm | tail -n 1)" = "150 188" ]
[ "$(wc -c <tight.pgm)" -eq $((15 + 150 * 188)) ]
[ "$(tail -c $((150 * 188)) tight.pgm | od -An -v -tu1 -w1 | sort -u | wc -l)" -gt 1 ]
refused 4 ./source_and_sink "$net" 1500 1200 none.pgm 1000000

# C++: what its comment says that it prints, in any budget.
if command -v "${CXX:-c++}" >/dev/null; then
    # shellcheck disable=SC2086
    "${CXX:-c++}" -std=c++11 -Wall -Wextra -Wpedantic -Werror $flags "$source/examples/array_to_map.cpp" \
        -I"$source/rfexec/include" "$build/librfexec.so" -Wl,-rpath,"$build" -o array_to_map
    sed -n 's|^//     \(defects: .*\)|\1|p' "$source/examples/array_to_map.cpp" >shown
    [ -s shown ]
    for bytes in 0 17000000; do ./array_to_map "$net" 1024 768 $bytes | diff shown -; done
    refused 1 ./array_to_map "$net" 1024 768 1000000
else
    echo "SKIPPED: array_to_map.cpp: no C++ compiler"
fi
echo "examples: run"
