#!/bin/sh
# Parts of outputs as a user makes them: run --part, merge and tools/scripts/run_parts.sh against
# one run: same bytes, same hash. A part that is there is not made again; one of another run,
# another model, another place or cut off is refused in words; so are gaps and overlaps. Runs that
# are killed at random and begun again give the same bytes.
set -eu
program=$1
source=$2
seal=$3 # sets the sum of a part's JSON anew
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() {
    echo "test_part_files: $*" >&2
    exit 1
}

# the whole of $1 at $2, with options, into whole.npy; its hash into $hash
whole() {
    hash=$("$program" run "$@" -j 1 -o whole.npy | sed -n 's/^output .*hash //p')
    [ ${#hash} = 32 ] || fail "$1: no hash of the whole"
}
# merges the files given into all.npy: bytes and hash of the whole
merged() {
    "$program" merge "$@" -o all.npy >told || fail "merge of $* fails"
    grep -q "hash $hash\$" told || fail "merge of $*: $(cat told), not $hash"
    cmp -s whole.npy all.npy || fail "merge of $*: other bytes than the whole"
}
# expects exit code $1 and words $2 of the rest
refused() {
    code=$1 words=$2
    shift 2
    set +e
    "$program" "$@" >told 2>&1
    got=$?
    set -e
    [ "$got" = "$code" ] || fail "exit code $got, not $code: $* $(cat told)"
    grep -q -- "$words" told || fail "no '$words' in: $(cat told)"
}

# networks with maps as outputs, odd sizes, 1, 2, 3, 5 and 8 parts; with a budget every other time
for case in unet:67x45:96MiB fsrcnn:83x61:32MiB real_esrgan_compact:19x23:64MiB \
    "$source/data/defect_net.onnx:203x187:32MiB"; do
    model=${case%:*:*} rest=${case##*/}
    budget=${case##*:} size=$(echo "$rest" | cut -d: -f2)
    whole "$model" "synthetic:$size"
    for n in 1 2 3 5 8; do
        rm -f p*.npy*
        for i in $(seq "$n"); do
            set -- --part "$i/$n" -o "p$i.npy" -j 1
            [ $((n % 2)) = 0 ] || set -- "$@" --memory "$budget"
            "$program" run "$model" "synthetic:$size" "$@" >told || fail "$model part $i/$n fails"
        done
        merged p*.npy
    done
done

# rectangles, and a network of several outputs
whole fsrcnn synthetic:40x30
"$program" run fsrcnn synthetic:40x30 --part-rect 0,0,33,60 -o a.npy >told
"$program" run fsrcnn synthetic:40x30 --part-rect 33,0,80,17 -o b.npy >told
"$program" run fsrcnn synthetic:40x30 --part-rect 33,17,80,60 -o c.npy >told
merged c.npy a.npy b.npy
refused 3 "beside part 'a.npy' (2 in all) .* belong to no part, the first one in row 33, column 17" merge a.npy b.npy -o no.npy
refused 3 'overlap: both have rows 0 to 33' merge a.npy a.npy b.npy c.npy -o no.npy
refused 2 '80 rows and 60 columns' run fsrcnn synthetic:40x30 --part-rect 0,0,81,60 -o d.npy
refused 2 'is not I/N' run fsrcnn synthetic:40x30 --part 3/2 -o d.npy
refused 2 'too few for 81 parts' run fsrcnn synthetic:40x30 --part 1/81 -o d.npy
refused 2 '--part needs -o: a part is one .npy file' run fsrcnn synthetic:40x30 --part 1/2
refused 2 'part-output says which of 4' run posenet synthetic:65x65 --part 1/2 -o d.npy
"$program" run posenet synthetic:65x65 -o pose.npy >told
"$program" run posenet synthetic:65x65 --part 1/2 --part-output heatmap -o d1.npy >told 2>&1 || {
    name=$("$program" run posenet synthetic:65x65 --json | sed -n 's/.*"name": *"\([^"]*\)".*/\1/p' | head -1)
    "$program" run posenet synthetic:65x65 --part 1/2 --part-output "$name" -o d1.npy >told
    "$program" run posenet synthetic:65x65 --part 2/2 --part-output "$name" -o d2.npy >told
    "$program" merge d1.npy d2.npy -o d.npy >told
    cmp d.npy "pose.$(echo "$name" | tr / _).npy" || fail "posenet: other bytes"
}
[ ! -e no.npy ] || fail "a merge that was refused left a file"

# what is there: nothing is done, or it is refused and stays as it is
before=$(cksum a.npy)
refused 0 'is there already, of the same run' run fsrcnn synthetic:40x30 --part-rect 0,0,33,60 -o a.npy
refused 3 'it is another part' run fsrcnn synthetic:40x30 --part 1/2 -o a.npy
refused 3 "'input' differs" run fsrcnn synthetic:40x30:7 --part-rect 0,0,33,60 -o a.npy
refused 3 "'options' differs" run fsrcnn synthetic:40x30 --bgr --part-rect 0,0,33,60 -o a.npy
refused 3 "'options' differs" run fsrcnn synthetic:40x30 --no-orient --part-rect 0,0,33,60 -o a.npy
refused 3 "'conv' differs" run fsrcnn synthetic:40x30 --conv winograd --part-rect 0,0,33,60 -o a.npy
refused 3 'differs' run fsrcnn:3 synthetic:40x30 --part-rect 0,0,33,60 -o a.npy
cp whole.npy foreign.npy
"$program" run fsrcnn whole.npy --part 1/2 -o bands.npy >told
refused 3 "'options' differs" run fsrcnn whole.npy --channels 3,2,1 --part 1/2 -o bands.npy
refused 3 'foreign.npy.json' run fsrcnn synthetic:40x30 --part 1/2 -o foreign.npy
[ "$(cksum a.npy)" = "$before" ] || fail "a part that was refused has changed"

# parts that do not belong together, or are not as they were made
"$program" run fsrcnn synthetic:40x30:7 --part-rect 33,17,80,60 -o other.npy >told
refused 3 "'input' differs" merge a.npy b.npy other.npy -o no.npy
cp c.npy cut.npy && cp c.npy.json cut.npy.json && truncate -s -4 cut.npy
refused 3 'cut off' merge a.npy b.npy cut.npy -o no.npy
refused 0 'is made again: .* cut off' run fsrcnn synthetic:40x30 --part-rect 33,17,80,60 -o cut.npy
cmp -s c.npy cut.npy || fail "a part that was cut off is not made again"
cp c.npy spoilt.npy && cp c.npy.json spoilt.npy.json
printf '\001' | dd of=spoilt.npy bs=1 seek=400 conv=notrunc 2>/dev/null
refused 3 'changed since' merge a.npy b.npy spoilt.npy -o no.npy
refused 0 'is made again: .* changed since' run fsrcnn synthetic:40x30 --part-rect 33,17,80,60 -o spoilt.npy
cmp -s c.npy spoilt.npy || fail "a part that was changed is not made again"
sed -i 's/"about"/"About"/' spoilt.npy.json
refused 3 'spoilt.npy.json was changed' merge a.npy b.npy spoilt.npy -o no.npy
refused 0 'is made again: .* was changed' run fsrcnn synthetic:40x30 --part-rect 33,17,80,60 -o spoilt.npy
refused 2 "would write over 'a.npy'" merge a.npy b.npy c.npy -o a.npy
refused 2 "would write over 'b.npy.json'" merge a.npy b.npy c.npy -o ./b.npy.json
cp c.npy bare.npy
refused 3 'bare.npy.json' merge a.npy b.npy bare.npy -o no.npy
echo '{"format": "rfexec part", "version": 3, "shape": [1, 3, 80, 1e99]}' >bare.npy.json
refused 3 "'shape' is missing or not valid" merge a.npy b.npy bare.npy -o no.npy
refused 4 'needs at least' merge a.npy b.npy c.npy -o no.npy --memory 1MiB
refused 2 'merge needs -o' merge a.npy b.npy c.npy
refused 3 'has no parts' run vgg16 synthetic:64x64 --part 1/2 -o no.npy
refused 2 'such as part.states' run mobilenet_v2 synthetic:64x64 --part 1/2 -o no.npy
refused 2 'takes parts --part I/N' run mobilenet_v2 synthetic:64x64 --part-rect 0,0,1,1 -o no.states
[ ! -e no.npy ] || fail "a merge that was refused left a file"
"$program" merge a.npy b.npy c.npy -o all.tif >told
"$program" run fsrcnn synthetic:40x30 -o whole.tif >told
cmp all.tif whole.tif || fail "other bytes of a TIFF"

# two pictures that are the same at the places that are looked at to know a file again, and parts of
# each: parts of one image have the same rows where both read them
cat >pictures.py <<'END'
import struct, sys
shape, row = (3, 60, 40), 40
header = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
header = header.ljust(117) + "\n"
for name, at in (("one.npy", -1), ("two.npy", 31)):
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for y in range(3 * 60):
            f.write(struct.pack("<40f", *((y * 7 + x * 3) % 11 + (y == at) for x in range(row))))
END
python3 pictures.py
cp one.npy in.npy
"$program" run fsrcnn in.npy --part 1/2 -o i1.npy -j 1 >told
cp two.npy in.npy
"$program" run fsrcnn in.npy --part 2/2 -o i2.npy -j 1 >told
refused 3 "'input' differs" merge i1.npy i2.npy -o no.npy
refused 3 "'input' differs" run fsrcnn in.npy --part 1/2 -o i1.npy
# where the identity says that both are one, as of larger files that are not hashed whole
input=$(sed -n 's/^ *"input": "\([0-9a-f]\{32\}\)".*/\1/p' i1.npy.json)
sed -i "s/\"input\": \"[0-9a-f]\{32\}\"/\"input\": \"$input\"/" i2.npy.json && "$seal" i2.npy
refused 3 'not of one image: row 31 ' merge i1.npy i2.npy -o no.npy

# states of two images
cp one.npy in.npy
"$program" run mobilenet_v2:0.25 in.npy --part 1/2 -o i1.states -j 1 >told
cp two.npy in.npy
"$program" run mobilenet_v2:0.25 in.npy --part 2/2 -o i2.states -j 1 >told
input=$(sed -n 's/^ *"input": "\([0-9a-f]\{32\}\)".*/\1/p' i1.states.json)
sed -i "s/\"input\": \"[0-9a-f]\{32\}\"/\"input\": \"$input\"/" i2.states.json && "$seal" i2.states
refused 3 "states 'i1.states' and 'i2.states' are not of one image: row 31 " merge i1.states i2.states -o no.npy

# an output that is joined of three maps, of 12, 6 and 3 rows: rows of each, as ranges of its cells
whole yolov8n synthetic:96x64
for n in 1 2 3 5 8; do
    rm -f p*.npy*
    for i in $(seq "$n"); do
        set -- --part "$i/$n" -o "p$i.npy" -j 1
        [ "$n" != 5 ] || set -- "$@" --memory 19MiB
        "$program" run yolov8n synthetic:96x64 "$@" >said || fail "yolov8n part $i/$n fails"
        [ "$n" != 2 ] || { cp "p$i.npy" "h$i.npy" && cp "p$i.npy.json" "h$i.npy.json"; }
    done
    merged p*.npy --memory 16MiB
done
grep -q '^part .* cells 88 to 96 of 126, hash' said || fail "the last of 8 parts: $(cat said)"
refused 3 '106 of 126 cells .* the first one is number 0' merge p5.npy p8.npy -o no.npy
refused 3 'overlap: both have cells 64 to 72' merge p[1-8].npy p5.npy -o no.npy
refused 3 'overlap: both have cells 0 to 16' merge h2.npy p1.npy h1.npy -o no.npy
refused 0 'is there already, of the same run' run yolov8n synthetic:96x64 --part 5/8 -o p5.npy
refused 3 'it is another part, cells 64 to 72, 112 to 116' run yolov8n synthetic:96x64 --part 6/8 -o p5.npy
refused 2 'no rectangles' run yolov8n synthetic:96x64 --part-rect 0,0,1,1 -o no.npy
refused 2 'has 12 rows, too few for 13 parts' run yolov8n synthetic:96x64 --part 1/13 -o no.npy
refused 2 'use .npy' merge p[1-8].npy -o no.tif
refused 2 'samples of 32 bits, not 8' merge p[1-8].npy -o no.npy --bits 8
refused 2 'folders of -o that end in .zarr' merge p[1-8].npy -o no.npy --zarr-chunk 16
refused 4 'needs at least' merge p[1-8].npy -o no.npy --memory 1MiB
# one that is only put together from maps, of 2 and 6 anchors a pixel, beside another
"$program" run blazeface synthetic:64x64 -j 1 -o both.npy >told
hash=$(sed -n 's/.*regressors.*hash //p' told) && cp both.regressors.npy whole.npy
for i in 1 2 3; do
    "$program" run blazeface synthetic:64x64 --part-output regressors --part $i/3 -o b$i.npy -j 1 >told
done
merged b2.npy b3.npy b1.npy
# merges part 6 of 8 whose JSON or array is changed by $2 to the program $1; expects the words $3
spoilt() {
    cp p6.npy s6.npy && cp p6.npy.json s6.npy.json
    "$1" "$2"
    refused 3 "$3" merge p[1-5].npy s6.npy p[78].npy -o no.npy
}
in_json() { sed -z -i "$1" s6.npy.json && "$seal" s6.npy; }
unsealed() { sed -z -i "$1" s6.npy.json; }
in_array() { printf '\001' | dd of=s6.npy bs=1 seek="$1" conv=notrunc 2>/dev/null; }
other_array() { cp "$1" s6.npy; }
cut_array() { truncate -s "$1" s6.npy; }
spoilt in_array 200 'changed since'
spoilt cut_array -4 'cut off'
spoilt other_array p7.npy 'does not have the shape in its JSON, 1 x 84 x 12'
spoilt unsealed 's/72,/71,/' 's6.npy.json was changed'
spoilt in_json 's/72,/71,/' 'overlap: both have cells 71 to 72'
spoilt in_json 's/72,/-72,/' "'cells' is missing or not valid"
spoilt in_json 's/\b120\b/127/' "'cells' is missing or not valid"
spoilt in_json 's/\b126\b/4611686018427387905/g' "'shape' is missing or not valid"
spoilt in_json 's/"channels": 84/"channels": 4611686018427387904/' "'cells' is missing or not valid"
spoilt in_json 's/"last": true/"last": false/' 'do not lie alike'
spoilt in_json 's/"version": 4/"version": 3/' "'shape' is missing or not valid"
spoilt in_json 's/"version": 4/"version": 5/' "'version' is missing or not valid"
refused 3 'not of one run' merge p[1-7].npy a.npy -o no.npy
refused 3 'not of one run' merge a.npy p[1-8].npy -o no.npy
if [ -e no.npy ] || [ -e no.tif ]; then fail "a merge that was refused left a file"; fi

# what merge holds does not grow with what the parts' JSON say
head -c 900000 /dev/zero | tr '\0' x >long
{ printf '    "pad": "' && cat long && echo '",'; } >pad
for i in $(seq 8); do
    "$program" run fsrcnn synthetic:40x30 --part "$i/8" -o "l$i.npy" -j 1 >told
    sed -i '/"about": {/r pad' "l$i.npy.json" && "$seal" "l$i.npy"
done
[ "$(wc -c <l8.npy.json)" -gt 900000 ] || fail "the JSON of a part has no 'about'"
peak=$("$program" merge l[1-8].npy -o l.npy --memory 11MiB --json | sed -n 's/.*"peak_rss_bytes": \([0-9]*\).*/\1/p')
[ "$peak" -lt 11534336 ] || fail "merge within 11 MiB took $peak bytes"

# a picture that is filled up to a multiple: parts of what is left
"$program" run fsrcnn synthetic:40x30 --pad-to 16 -o whole.npy >told
hash=$(sed -n 's/^output .*hash //p' told)
for i in 1 2; do "$program" run fsrcnn synthetic:40x30 --pad-to 16 --part $i/2 -o f$i.npy >told; done
merged f1.npy f2.npy
refused 3 "'options' differs" run fsrcnn synthetic:40x30 --pad-to 16,edge --part 1/2 -o f1.npy

# classifiers: parts of the states of the pool, put together by merge in any order
for case in mobilenet_v2:97x113:64MiB resnet50:65x97:160MiB; do
    model=${case%%:*} rest=${case#*:}
    budget=${rest##*:} size=${rest%%:*}
    whole "$model" "synthetic:$size"
    for n in 1 2 5; do
        rm -f s*.states*
        set --
        for i in $(seq "$n"); do
            "$program" run "$model" "synthetic:$size" --part "$i/$n" -o "s$i.states" -j 1 \
                --memory "$budget" >told || fail "$model states $i/$n fail"
            set -- "s$i.states" "$@"
        done
        merged "$@"
    done
done
refused 2 'use .npy' merge s1.states s2.states s3.states s4.states s5.states -o no.tif
refused 2 'samples of 32 bits, not 16' merge s1.states s2.states s3.states s4.states s5.states -o no.npy --bits 16
refused 2 'end in .tif' merge s1.states s2.states s3.states s4.states s5.states -o no.npy --tiff-tile 16
refused 3 "beside states 's1.states' 1 of 5 parts are missing, the first one 2" merge s1.states s3.states s4.states s5.states -o no.npy
refused 3 "states 's3.states': part 3 of 5 is there twice" merge s1.states s2.states s3.states s3.states s4.states s5.states -o no.npy
refused 0 'is there already' run resnet50 synthetic:65x97 --part 1/5 -o s1.states
refused 3 'is not this part' run resnet50 synthetic:65x97 --part 2/5 -o s1.states
refused 3 'is not this part' run resnet50 synthetic:65x97:3 --part 1/5 -o s1.states
"$program" run resnet50 synthetic:65x97:3 --part 1/5 -o other.states >told
refused 3 'not of one run' merge s2.states s3.states s4.states s5.states other.states -o no.npy
cp s5.states cut.states && cp s5.states.json cut.states.json && truncate -s -8 cut.states
refused 3 'does not have' merge s1.states s2.states s3.states s4.states cut.states -o no.npy
cp s5.states spoilt.states && cp s5.states.json spoilt.states.json
printf '\377\377\377\377\377\377\377\177' | dd of=spoilt.states bs=1 conv=notrunc 2>/dev/null
refused 3 'is not valid' merge s1.states s2.states s3.states s4.states spoilt.states -o no.npy
cp s5.states spoilt.states
printf '\001' | dd of=spoilt.states bs=1 seek=40 conv=notrunc 2>/dev/null
refused 3 'changed since' merge s1.states s2.states s3.states s4.states spoilt.states -o no.npy
refused 0 "part 'spoilt.states' is made again: .* changed since" run resnet50 synthetic:65x97 --part 5/5 -o spoilt.states
cmp -s s5.states spoilt.states || fail "states that were changed are not made again"
cp s5.states bare.states
refused 3 'bare.states.json' run resnet50 synthetic:65x97 --part 5/5 -o bare.states
refused 3 "is not this part" run mobilenet_v2 synthetic:65x97 --part 5/5 -o s5.states
[ ! -e no.npy ] || fail "a merge of states that was refused left a file"

# states that were taken elsewhere with their model; without it
mkdir there
"$program" export mobilenet_v2:0.25 --size 33x35 -o net.onnx >told
whole net.onnx synthetic:33x35
"$program" run net.onnx synthetic:33x35 --part 1/1 -o there/s.states -j 1 >told
mv net.onnx there
merged there/s.states
sed -z 's/"image": *\[[^,]*/"image": [4/' there/s.states.json >there/t.states.json && cp there/s.states there/t.states
refused 3 't.states.json was changed' merge there/t.states -o no.npy
"$seal" there/t.states
refused 3 "states 'there/t.states' are of an image of 4 x 33 x 35" merge there/t.states -o no.npy
sed 's/"output": *"[^"]*"/"output": "nix"/' there/s.states.json >there/t.states.json && "$seal" there/t.states
refused 3 "states 'there/t.states' are of output 'nix'" merge there/t.states -o no.npy
mv there/net.onnx there/old.onnx
"$program" export mobilenet_v2:0.25 --size 33x35 --seed 1 -o there/net.onnx >told
refused 3 "states 'there/s.states' are not of model" merge there/s.states -o no.npy
rm there/net.onnx there/old.onnx
refused 3 'nor beside them' merge there/s.states -o no.npy
truncate -s 5M there/s.states.json
refused 3 'bytes long' merge there/s.states -o no.npy

# global operations one after the other: a round for each, then the parts of the output
model=unet_instance size=33x21 n=2 states=
whole $model synthetic:$size
for round in $(seq 18); do
    for i in $(seq $n); do
        # shellcheck disable=SC2086
        "$program" run $model synthetic:$size --part "$i/$n" $states -o "r$round.p$i" -j 1 >told ||
            fail "$model round $round part $i fails"
    done
    "$program" merge "r$round.p1" "r$round.p2" -o "r$round.all" >told || fail "$model round $round"
    states="--states r$round.all"
done
refused 2 'states are written' merge r3.p1 r3.p2 -o no.states --bits 8
refused 3 "states 'r4.p2' and 'r3.p1': .* do not add up" merge r3.p1 r4.p2 -o no.states
refused 3 'alone' run $model synthetic:$size --part 1/2 --states r3.p1 -o no.states
refused 3 'of another run' run $model synthetic:$size:5 --part 1/2 --states r3.all -o no.states
rm -f p*.npy*
for i in $(seq $n); do
    # shellcheck disable=SC2086
    "$program" run $model synthetic:$size --part "$i/$n" $states -o "p$i.npy" -j 1 >told ||
        fail "$model part $i fails"
done
merged p1.npy p2.npy

# what plan says of parts: as many MACs as runs have
"$program" plan fsrcnn --size 300x200 --parts 3 >told
grep -q '^200 to 400 ' told || fail "plan --parts: $(cat told)"
"$program" plan mobilenet_v2 --parts 3 >told
grep -q '^rounds  *1: ' told || fail "plan --parts: $(cat told)"
"$program" plan unet_instance --size 64x64 --parts 3 >told
grep -q '^rounds  *19: 18 of states' told || fail "plan --parts: $(cat told)"
grep -q '^ *18 ' told || fail "plan --parts: no table of rounds: $(cat told)"
grep -q '^0 to 22 ' told || fail "plan --parts: no parts after the rounds: $(cat told)"
"$program" plan yolov8n --size 96x64 --parts 3 >told
grep -q '^32 to 64, 104 to 112, 122 to 124 ' told || fail "plan --parts: $(cat told)"
refused 2 'has 12 rows' plan yolov8n --size 96x64 --parts 13
refused 4 'needs at least' plan fsrcnn --size 40x40 --parts 3 --memory 1MiB
refused 4 'needs at least' plan unet_instance --size 40x40 --parts 2 --memory 10MiB
macs=$("$program" plan fsrcnn --size 300x200 --parts 3 --json | sed -n 's/^ *"macs": \([0-9]*\).*/\1/p' | tail -1)
[ -n "$macs" ] || fail "plan --parts --json has no MACs"

# processes side by side; killed at random and begun again
whole fsrcnn synthetic:300x200
RFEXEC=$program sh "$source/tools/scripts/run_parts.sh" 5 2 fsrcnn synthetic:300x200 all.npy -j 1 2>told >told2 ||
    fail "run_parts.sh: $(cat told)"
grep -q "hash $hash\$" told2 || fail "run_parts.sh: $(cat told2)"
cmp whole.npy all.npy || fail "run_parts.sh: other bytes"
rm -r all.npy all.npy.parts
for delay in 0.005 0.02 0.05 0.08 0.12 0.2; do
    RFEXEC=$program timeout -s KILL "$delay" sh "$source/tools/scripts/run_parts.sh" 5 2 fsrcnn \
        synthetic:300x200 all.npy -j 1 >told 2>&1 || true
done
RFEXEC=$program sh "$source/tools/scripts/run_parts.sh" 5 2 fsrcnn synthetic:300x200 all.npy -j 1 >told2 2>told ||
    fail "begun again: $(cat told)"
grep -q "hash $hash\$" told2 || fail "killed and begun again: $(cat told2)"
cmp whole.npy all.npy || fail "killed and begun again: other bytes"

# which parts are there, and commands that make the others: none of the others is made again
status() { # expects exit code $1 and line $2 of the folder $3
    refused "$1" "$2" merge --status "$3"
}
status 0 '^output     there 1 to 5, of 5$' all.npy.parts
rm -f all.npy all.npy.parts/part2.npy all.npy.parts/part4.npy*
printf '\001' | dd of=all.npy.parts/part5.npy bs=1 seek=400 conv=notrunc 2>/dev/null
status 3 '^output     missing 2, 4; there 1, 3; damaged 5, of 5$' all.npy.parts
grep -q "part5.npy': its values have the hash" told || fail "--status: $(cat told)"
mv all.npy.parts/plan.json plan.json # parts say it too
status 3 '^output     missing 2, 4; there 1, 3; damaged 5, of 5$' all.npy.parts
kept=$(ls -i all.npy.parts/part[13].npy)
sed -n 's/^  rfexec/"$program"/p' told | sed 's/ FILE / all.npy /' >commands
[ "$(wc -l <commands)" = 4 ] || fail "--status: $(cat told)"
program=$program sh -e commands >told2 2>said || fail "commands of --status: $(cat said)"
cmp whole.npy all.npy || fail "commands of --status: other bytes"
[ "$kept" = "$(ls -i all.npy.parts/part[13].npy)" ] || fail "commands of --status make parts again"
cp a.npy all.npy.parts/part3.npy && cp a.npy.json all.npy.parts/part3.npy.json
cp a.npy all.npy.parts/part1.npy && rm all.npy.parts/part1.npy.json
status 3 'part1.npy is not a part, as it has no JSON beside it: move it away first' all.npy.parts
status 3 "part3.npy is not of one run with .*part[245].npy': their 'input' differs: move it" all.npy.parts
rm all.npy.parts/*.npy
refused 3 'there is no part, and no plan.json' merge --status all.npy.parts
refused 3 'there is no part, and no plan.json' merge --status all.npy.parts --json
refused 5 'No such file' merge --status nowhere
refused 2 '--status excludes -o' merge --status all.npy.parts -o no.npy
mv plan.json all.npy.parts
status 3 '^output     missing 1 to 5, of 5$' all.npy.parts
mkdir rect && cp a.npy* b.npy* rect
refused 3 'belong to no part, the first one in row 33, column 17' merge --status rect
cp c.npy* rect
status 0 '3 parts without numbers' rect

# networks of several rounds: the same scripts; arrays of jobs by a stand-in that runs them in turn,
# numbers them from 8 on and notes what else they were given
mkdir bin
cat >bin/sbatch <<'END'
#!/bin/sh
array=0 after=none
while :; do
    case $1 in
        --array) array=$(seq "${2#1-}") && shift 2 ;;
        --dependency) after=$2 && shift 2 ;;
        --output) shift 2 ;;
        --*) given="$given $1" && shift ;;
        *) break ;;
    esac
done
id=$(($(wc -l <jobs) + 8))
echo "$id $after$given $(echo "$array" | wc -l)" >>jobs
for i in $array; do SLURM_ARRAY_TASK_ID=$i sh "$@" >>said || exit 1; done
echo "$id;cluster"
END
chmod +x bin/sbatch
# run_parts.sh and slurm_parts.sh for the case at hand, each must give the bytes of the whole
in_processes() {
    RFEXEC=$program sh "$source/tools/scripts/run_parts.sh" 3 2 "$model" "synthetic:$size" all.npy --bgr -j 1 2>told >told2 ||
        fail "run_parts.sh, rounds: $(cat told)"
    grep -q "hash $hash\$" told2 || fail "run_parts.sh: $(cat told2)"
    cmp whole.npy all.npy || fail "run_parts.sh, rounds: other bytes"
}
in_jobs() {
    : >jobs
    job=$(RFEXEC=$program SLURM_OPTIONS='--mem=1G --time=60' PATH=$PWD/bin:$PATH \
        sh "$source/tools/scripts/slurm_parts.sh" 2 "$model" "synthetic:$size" all.npy --bgr -j 1 2>told) ||
        fail "slurm_parts.sh: $(cat told)"
    cmp whole.npy all.npy || fail "slurm_parts.sh: other bytes"
    # an array of jobs and one that merges for every round, each after the one before
    id=8 after=none
    while [ "$id" -lt $((8 + 2 * $1)) ]; do
        echo "$id $after --parsable --kill-on-invalid-dep=yes --mem=1G --time=60 $((2 - id % 2))"
        after=afterok:$id id=$((id + 1))
    done >wanted
    cmp wanted jobs || fail "slurm_parts.sh, $model: $(cat jobs)"
    [ "$job" = $((id - 1)) ] || fail "slurm_parts.sh: the last job is '$job'"
}
for case in "$source/data/phase_net.onnx:67x49:7" mobilenet_v2:0.25:33x49:1 yolov8n:97x65:1; do
    rounds=${case##*:} rest=${case%:*}
    model=${rest%:*} size=${rest##*:}
    whole "$model" "synthetic:$size" --bgr
    rm -rf all.npy all.npy.parts
    in_processes
    # again, without some of it: the rest is not made again
    rm -f all.npy all.npy.parts/round3.states all.npy.parts/*part2.npy all.npy.parts/*part2.states
    kept=$(find all.npy.parts -name '*.npy' -o -name '*.states' | xargs ls -i)
    if [ "$rounds" = 1 ]; then # parts of the output, or of the round of which merge makes it
        status 3 '^\(round 1\|output\)  *missing 2; there 1, 3, of 3$' all.npy.parts
    else
        status 3 '^states     merged up to round 6 of 6$' all.npy.parts
        rm -f all.npy.parts/round[3-6].states all.npy.parts/round5.part1.states
        status 3 '^states     merged up to round 2 of 6$' all.npy.parts
        status 3 '^round 3    missing 2; there 1, 3, of 3$' all.npy.parts
        status 3 '^round 5    missing 1 to 2; there 3, of 3$' all.npy.parts
        kept=$(find all.npy.parts -name '*.npy' -o -name '*.states' | xargs ls -i)
    fi
    sed -n 's/^  rfexec/"$program"/p' told | sed 's/ FILE / all.npy /' >commands
    program=$program sh -e commands >told2 2>said || fail "commands of --status, $model: $(cat said)"
    cmp whole.npy all.npy || fail "commands of --status, $model: other bytes"
    [ "$kept" = "$(echo "$kept" | sed 's/^ *[0-9]* //' | xargs ls -i)" ] || fail "--status, $model: parts made again"
    in_processes
    [ "$kept" = "$(echo "$kept" | sed 's/^ *[0-9]* //' | xargs ls -i)" ] || fail "run_parts.sh makes parts again"
    rm -rf all.npy all.npy.parts
    in_jobs "$rounds"
    rm all.npy
    kept=$(ls -i all.npy.parts/*part[12].*)
    in_jobs "$rounds"
    [ "$kept" = "$(ls -i all.npy.parts/*part[12].*)" ] || fail "slurm_parts.sh makes parts again"
done
# the scripts' exit codes are rfexec's; names are taken as they are; what is behind -- goes to merge
in_script() { # expects exit code $1 and words $2 of run_parts.sh
    code=$1 words=$2 got=0
    shift 2
    RFEXEC=$program sh "$source/tools/scripts/run_parts.sh" "$@" >told 2>&1 || got=$?
    [ "$got" = "$code" ] || fail "run_parts.sh $*: exit code $got, not $code: $(cat told)"
    grep -q -- "$words" told || fail "run_parts.sh $*: no '$words' in: $(cat told)"
}
in_script 3 'no_such_network' 2 2 no_such_network synthetic:40x30 no.npy
in_script 4 'smallest possible budget' 2 2 fsrcnn synthetic:40x30 no.npy --memory 1MiB
in_script 2 'standard input' 2 2 fsrcnn - no.npy
in_script 2 'not a number' 2 two fsrcnn synthetic:40x30 no.npy
"$program" run fsrcnn synthetic:40x30 -j 1 -o whole.tif --bits 16 --range 0,1 >told
in_script 0 'hash' 2 2 fsrcnn synthetic:40x30 "it's {}.tif" -j 1 -- --bits 16 --range 0,1
cmp whole.tif "it's {}.tif" || fail "run_parts.sh: options of merge are lost"
: >jobs
RFEXEC=$program SLURM_ARRAY_MOST=2 PATH=$PWD/bin:$PATH sh "$source/tools/scripts/slurm_parts.sh" 5 fsrcnn \
    synthetic:40x30 jobs.tif -j 1 -- --bits 16 --range 0,1 >told 2>&1 || fail "slurm_parts.sh: $(cat told)"
cmp whole.tif jobs.tif || fail "slurm_parts.sh, three arrays: other bytes"
[ "$(sed 's/ .* / /' jobs | tr '\n' ' ')" = '8 2 9 2 10 1 11 1 ' ] || fail "slurm_parts.sh, three arrays: $(cat jobs)"
grep -q '^11 afterok:8:9:10 ' jobs || fail "slurm_parts.sh, three arrays: $(cat jobs)"
got=0
RFEXEC=$program PATH=/nothing /bin/sh "$source/tools/scripts/slurm_parts.sh" 5 fsrcnn synthetic:40x30 no.npy >told 2>&1 || got=$?
[ "$got" = 5 ] || fail "slurm_parts.sh without sbatch: exit code $got: $(cat told)"
echo "test_part_files: passed"
