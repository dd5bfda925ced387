#!/bin/sh
# The commands that draw, as a user calls them: test_chart_commands.sh RFEXEC WORK_DIRECTORY.
set -eu
rfexec=$1
rm -rf "$2"
mkdir -p "$2"
cd "$2"

fail() {
    echo "test_chart_commands: $*" >&2
    exit 1
}

# expect CODE WORDS ARGUMENTS...: the exit code and words on stderr; no file is left.
expect() {
    code=$1 words=$2
    shift 2
    got=0
    "$rfexec" "$@" >out.txt 2>err.txt || got=$?
    [ "$got" = "$code" ] || fail "rfexec $*: exit code $got, expected $code: $(cat err.txt)"
    grep -qF -e "$words" err.txt || fail "rfexec $*: no '$words' in: $(cat err.txt)"
    [ -z "$(find . -name 'no*')" ] || fail "rfexec $*: left $(find . -name 'no*')"
}

# has FILE WORDS...: each of the words is in the file.
has() {
    file=$1
    shift
    for words in "$@"; do
        grep -qF -e "$words" "$file" || fail "no '$words' in $file"
    done
}

"$rfexec" curve resnet18 mobilenet_v2 --size 256x256 -o curves.svg --csv >curves.csv
has curves.svg "resnet18: " "mobilenet_v2: " "256x256 pixels, 4x4 tiles, fused" "peak memory" "MACs"
has curves.csv '"features.6"'
"$rfexec" curve toy --size 64x64 -o front.svg >/dev/null
has front.svg "toy, all grids and cuts"

"$rfexec" analyze mobilenet_v2 --size 1024x1024 --plot memory.svg --tiles 4x4 --split features.6 \
    >layers.txt
# 4.06 and 1.087 are known for this cut; 3,504,872 parameters less batch norm are 13.3 MiB
has memory.svg "parameters: 13.3 MiB" "cut after features.6" "memory [MiB]" "MACs x 1.087" \
    "memory / 4.06" "untiled: peak 133.3 MiB"
has layers.txt features.18
"$rfexec" analyze table1 --plot table1.png --json >table1.json
has table1.json '"command": "analyze"'
[ "$(head -c 4 table1.png | od -An -c | tr -d ' ')" = '211PNG' ] || fail "table1.png is no PNG"

# Placements: a filled rectangle for each of the 55 tensors and the five kinds in the legend.
"$rfexec" memory mobilenet_v2 --size 224x224 --plot place.svg >place.txt
has place.svg "mobilenet_v2, 224x224: 55 tensors in 5.742 MiB" "strategy by-size; proven" \
    "lower bound 5.742 MiB" "peak: 5.742 MiB alive at features.2.conv.1.2" "address [MiB]" \
    "features.2.conv.0.2  4.594 MiB" "depthwise, grouped" "features.17"
[ "$(grep -c '<polygon fill' place.svg)" = 60 ] || fail "place.svg: not 55 + 5 rectangles"
has place.txt "by-size                  6.699 *     5.742 *  Greedy by Size" \
    "lower bound              6.604       5.742 " "by-size; proven: none is smaller" \
    "row by row (tile-aware)" "by-lifetime" "by-peers" "most bytes of rows alive at once"
"$rfexec" memory mobilenet_v2 --size 224x224 --json >place.json
[ "$(grep -c '"offset"' place.json)" = 55 ] || fail "place.json: not 55 offsets"
# a beside b, then c where a was: 7 bytes are alive at 1
printf 'id,lower,upper,size\na,0,2,4\nb,1,3,3\nc,2,4,4\n' >problem.csv
"$rfexec" alloc problem.csv --plot alloc.svg -o placed.csv 2>alloc.txt
has alloc.svg "problem.csv: 3 items in 7 bytes" "peak: 7 bytes alive from 1 to 2" "address [bytes]"
[ "$(grep -c '<polygon fill' alloc.svg)" = 5 ] || fail "alloc.svg: not 3 + 2 rectangles"
expect 2 ".svg or .png" memory resnet18 --plot no.pdf
expect 2 ".svg or .png" alloc problem.csv --plot no
expect 4 "at least 7" alloc problem.csv --capacity 5 --plot no.svg

# Tiles by hand: after module 1 the receptive field is 15, a tile of 56 needs 70 pixels; a 2x2 pool
# changes nothing (L2 and L3 of the paper's figure 8); after module 2 (40, jump 2, 28 positions) 94.
"$rfexec" curve toy:m=3,b=2,n=3,cst=32 --size 224x224 --tiles 4x4 --csv >toy.csv
for want in module1,70,70 maxpool1,70,70 module2,94,94 maxpool2,94,94; do
    split=${want%%,*} size=${want#*,}
    grep -F ",curve,fused,\"$split\"," toy.csv | grep -q ",$size\$" || fail "tile of $split is not $size"
done

cat >data.csv <<'END'
series,x,y,label
"it's ""one"", a_b",1,10,first
"it's ""one"", a_b",2,100
# a remark
two,1,20,"L2, L3"
two,3,0.5
END
"$rfexec" chart data.csv -o data.svg --title "A title" --x-label "size [px]" --y-label ratio --log-y
has data.svg "it's" "a_b" "L2, L3" "first" "A title" "size [px]" "ratio"
"$rfexec" chart - -o data2.svg <data.csv
has data2.svg "two"

printf 'a,1\n' >bad1.csv
printf 'a,1,2\na,x,2\n' >bad2.csv
printf 'a,1,2,"open\n' >bad3.csv
printf 'a,1,2,l,more\n' >bad4.csv
: >empty.csv
printf 'a,1,2\n"\n' >bad5.csv
# values below 0 and gaps: the axis goes below 0
printf 'a,1,-7,low\na,2,3\na,nan,1,gone\na,3,nan,gone\na,4,inf\na,5,1\n' >gaps.csv
"$rfexec" chart gaps.csv -o gaps.svg
has gaps.svg low "-6"
if grep -q gone gaps.svg; then fail "a label at no place"; fi
expect 3 "bad1.csv:1" chart bad1.csv -o no.svg
expect 3 "bad2.csv:2" chart bad2.csv -o no.svg
expect 3 "bad3.csv:1" chart bad3.csv -o no.svg
expect 3 "bad4.csv:1" chart bad4.csv -o no.svg
expect 3 "bad5.csv:2" chart bad5.csv -o no.svg
expect 2 "nothing to draw" chart empty.csv -o no.svg
expect 5 "missing.csv" chart missing.csv -o no.svg
expect 2 ".svg or .png" chart data.csv -o no.pdf
expect 2 "-o FILE" chart data.csv
expect 2 ".svg or .png" curve resnet18 -o no.gif
expect 2 ".svg or .png" analyze resnet18 --plot no
expect 2 "--plot FILE" analyze resnet18 --tiles 4x4
expect 2 "nowhere" analyze resnet18 --plot no.svg --split nowhere
expect 5 "no_folder" curve resnet18 -o no_folder/a.svg
mkdir empty_path
PATH=$PWD/empty_path "$rfexec" curve resnet18 -o none.svg >out.txt 2>err.txt && fail "drew without gnuplot"
[ "$(PATH=$PWD/empty_path "$rfexec" curve resnet18 -o none.svg >out.txt 2>err.txt || echo $?)" = 5 ] ||
    fail "without gnuplot: not exit code 5"
has err.txt gnuplot-nox
[ -z "$(find . -name 'none*')" ] || fail "left a file without gnuplot"
