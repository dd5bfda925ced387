#!/bin/sh
# What the loader will do with the built binaries:
# test_binaries.sh BUILD_DIR PROGRAM LIBRARY ARCHIVE [plain].
# Run paths of all of them; of the program and the library also what rfx_harden asks for, but for
# the compiler's part where the build is "plain" (sanitizers, no optimisation).
set -eu
build=$1 program=$2 library=$3 archive=$4 kind=${5:-hardened}
failures=0 checked=0

fail() {
    echo "test_binaries: $*" >&2
    failures=$((failures + 1))
}

# An element of a run path that is empty or relative is looked for in the current folder.
check_run_path() {
    path=$(readelf -dW "$1" 2>/dev/null | sed -n 's/.*Library r[un]*path: \[\(.*\)\]$/\1/p')
    checked=$((checked + 1))
    [ -n "$path" ] || return 0
    rest=$path:
    while [ -n "$rest" ]; do
        case ${rest%%:*} in
            /* | \$ORIGIN | \$ORIGIN/*) ;;
            *) fail "$1: run path '$path' has '${rest%%:*}', which is the current folder" ;;
        esac
        rest=${rest#*:}
    done
}

has() {
    file=$1 what=$2 words=$3
    shift 3
    readelf -W "$@" "$file" | grep -qE -e "$words" || fail "$file: no $what"
}

# Test programs, the program, the demo's, the library; what compilers left aside. Files of tests that
# run beside this one come and go meanwhile.
files=$(find "$build" -type f \( -perm -u+x -o -name '*.so*' \) ! -path '*/CMakeFiles/*' \
    ! -path '*_work/*' ! -path '*/oracle*/*' 2>/dev/null || true)
for file in $files; do
    [ "$(head -c 4 "$file" 2>/dev/null | tail -c 3)" = ELF ] || continue
    check_run_path "$file"
done
[ "$checked" -ge 2 ] || fail "only $checked binaries found in $build"

for file in "$program" "$library"; do
    has "$file" "read-only relocations" GNU_RELRO -l
    has "$file" "binding at the start" "BIND_NOW|Flags:.* NOW|Flags: NOW" -d
    has "$file" "stack that is data alone" "GNU_STACK.* RW " -l
    [ "$kind" = plain ] && continue
    has "$file" "checked calls" "UND __[a-z]*printf_chk" --dyn-syms
    has "$file" "checked calls" "UND __(mem|str)[a-z]*_chk" --dyn-syms
done
# In our own code: a library that is linked in may be guarded where that is not.
guarded=$(readelf -rW "$archive" | grep -c __stack_chk_fail || true)
[ "$kind" = plain ] || [ "$guarded" -ge 200 ] || fail "$archive: guarded stacks in $guarded functions"
has "$program" "position-independent program" "Flags:.* PIE" -d
[ "$failures" = 0 ] || exit 1
echo "$checked binaries read"
