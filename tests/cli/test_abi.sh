#!/bin/sh
# What programs that are built rely on: members and numbers of the public header against
# rfexec/api/layout.txt, and, where abigail-tools are there, the functions and types of a library with
# debugging information against rfexec/api/librfexec.abi. `update` writes both anew; that is refused
# while [Unreleased] in CHANGELOG.md does not name each function, struct and enum that changes.
# usage: test_abi.sh LIBRARY SOURCE_DIR WORK_DIR [update]
# LIBRARY "": the header alone; exit code 77: no abidw
set -eu
library=$1 source=$2 work=$3 update=${4:-}
header=$source/rfexec/include/rfexec/rfexec.h
layout=$source/rfexec/api/layout.txt
dump=$source/rfexec/api/librfexec.abi
rm -rf "$work"
mkdir -p "$work"

fail() {
    echo "abi: $*"
    exit 1
}

# names of functions and types, one a line, on standard input: fails when one is in no line of
# [Unreleased]
require_named() {
    sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' "$source/CHANGELOG.md" >"$work/unreleased"
    LC_ALL=C sort -u >"$work/changed"
    unnamed=
    while read -r name; do
        grep -q -w -e "$name" "$work/unreleased" || unnamed="$unnamed $name"
    done <"$work/changed"
    [ -z "$unnamed" ] || fail "changed, and not named under [Unreleased] in CHANGELOG.md:$unnamed"
}

${CC:-cc} -Wall -Wextra -I "${header%/rfexec/rfexec.h}" "$source/tests/cli/abi/print_layout.c" \
    -o "$work/print_layout"
"$work/print_layout" >"$work/layout" || fail "$(grep -e expected -e bytes: "$work/layout")"
for word in $(sed -n 's/^struct \(rfx_[a-z_]*\) {.*/\1/p; s/^ *\(RFX_[A-Z_0-9]*\) = [0-9]*,.*/\1/p' "$header"); do
    grep -q -w -e "$word" "$work/layout" || fail "print_layout.c does not print $word"
done
if ! diff "$layout" "$work/layout" >"$work/layout.diff"; then
    cat "$work/layout.diff"
    # Which structs: a line for each member with its struct, before and after.
    for side in "$layout" "$work/layout"; do
        awk '/^struct/ { s = $2; print s, "size", $3; next } /^ / { print s, $0; next } { print }' \
            "$side" >"$work/named.${side##*/}"
    done
    diff "$work/named.layout.txt" "$work/named.layout" | sed -n 's/^[<>] \([A-Za-z_0-9]*\).*/\1/p' |
        require_named
    [ "$update" = update ] || fail "layout.txt is of another header: 'update' writes it anew"
    cp "$work/layout" "$layout"
fi
[ -n "$library" ] || exit 0

command -v abidw >/dev/null || { echo "SKIPPED: no abidw (abigail-tools)"; exit 77; }
readelf -S "$library" | grep -q '\.debug_info' || fail "$library has no debugging information"
abidw --headers-dir "${header%/rfexec.h}" --no-corpus-path --no-comp-dir-path --no-show-locs \
    --no-elf-needed --type-id-style hash --drop-private-types --exported-interfaces-only \
    "$library" | sed "s|path='[^']*/|path='|" >"$work/abi"
if grep -n -e "'/[^>]" -e "='[^']*\.\./" "$work/abi"; then fail "the dump has paths"; fi
for name in $(cat "$source/rfexec/api/exported_symbols.txt"); do
    grep -q "<function-decl name='$name'" "$work/abi" || fail "the dump does not describe $name"
done
if ! abidiff --harmless --leaf-changes-only "$dump" "$work/abi" >"$work/report"; then
    cat "$work/report"
    grep -oE "^ *\[[AD]\] .*|^'.*' changed:|^  *\[C\] .*" "$work/report" |
        sed -nE "s/^ *\[[ADC]\] '(function|method) [^(]*\b(rfx_[a-z0-9_]+)\(.*/\2/p;
            s/^'(struct|enum|typedef) ([a-z0-9_]+).*/\2/p" | require_named
    [ "$update" = update ] || fail "librfexec.abi is of another library: 'update' writes it anew"
fi
[ "$update" != update ] || cp "$work/abi" "$dump"
echo "abi: as in layout.txt and librfexec.abi"
