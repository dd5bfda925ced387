#!/bin/sh
# Man page and completions: every command and option of the tables is in each of them, and the tools
# that read them do, those that are there.
# usage: test_words.sh PROGRAM WORK_DIR
set -eu
program=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
cd "$work"

fail() {
    echo "$*"
    exit 1
}

for kind in man bash zsh fish; do
    "$program" reference $kind >$kind
    [ -s $kind ] || fail "$kind: empty"
done
if "$program" reference csh 2>said; then fail "csh: exit code 0"; fi
grep -q "man, bash, zsh and fish" said || fail "csh: $(cat said)"

# Commands and options as help lists them.
"$program" help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v -e help -e version >commands
if "$program" help | grep -E '^  [a-z]+ [^ ]'; then fail "help: no column between name and summary"; fi
[ "$(wc -l <commands)" -ge 15 ] || fail "only these commands found: $(cat commands)"
while read -r command; do
    "$program" help "$command" | sed -n 's/^  \(-[a-z], \|    \)--\([a-z0-9-]*\).*/\2/p' >options
    [ -s options ] || fail "$command: no options found"
    # the part of each that is about this command
    sed -n "/^\\.SS \"$command\"/,/^\\.S[SH]/p" man | tr -d '\\' >man_part
    sed -n "/^        $command)/,/ ;;\$/p" zsh >zsh_part
    sed -n "/^        $command)/,/^            options=/p" bash >bash_part
    grep -e "from $command'" fish >fish_part
    while read -r option; do
        grep -q -e "fB--$option" man_part || fail "man: $command --$option is missing"
        grep -q -e "--$option[ =']" bash_part || fail "bash: $command --$option is missing"
        grep -q -e "--$option" zsh_part || fail "zsh: $command --$option is missing"
        grep -q -e "-l $option " fish_part || fail "fish: $command --$option is missing"
    done <options
done <commands

have() {
    command -v "$1" >/dev/null && return 0
    echo "SKIPPED: no $1"
    return 1
}

if have groff; then
    groff -man -Tutf8 -ww -z man 2>said
    [ ! -s said ] || fail "groff: $(cat said)"
fi
if have bash; then
    cat >ask <<'END'
. ./bash
compopt() { :; }
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _rfexec
    printf '%s\n' "${COMPREPLY[*]}"
}
ask rfexec ver
ask rfexec help adv
ask rfexec run mobilenet_
ask rfexec run x --conv w
ask rfexec run x --mem
ask rfexec models --
END
    bash ask >said
    cat >expected <<'END'
verify version
advise
mobilenet_v2 mobilenet_v1 mobilenet_v3_large mobilenet_v3_small mobilenet_v2:int8
winograd
--memory
--json --help
END
    diff expected said || fail "bash completes something else"
fi
if have zsh; then zsh -n zsh || fail "zsh cannot read its completion"; fi
if have fish; then
    fish -n fish || fail "fish cannot read its completion"
    fish -c 'source fish; complete -C "rfexec advi"' | grep -q '^advise' || fail "fish: no advise"
    fish -c 'source fish; complete -C "rfexec run x --conv w"' | grep -q winograd ||
        fail "fish: no winograd"
fi
echo "words: man page and completions have everything"
