#!/bin/sh
# rfexec-mpi against one process: same bytes and hash for several networks, numbers of ranks and kinds
# of files, within the budget; what goes wrong on one rank ends the job with its message and leaves
# nothing. test_mpi_same.sh has three short cases more.
# usage: test_mpi.sh PROGRAM MPI_PROGRAM MPIEXEC WORK_DIR; exit code 77: there is no MPI
set -eu
program=$1 parallel=$2 mpiexec=$3 work=$4
[ -n "$parallel" ] || { echo "SKIPPED: rfexec-mpi is not built, CMake found no MPI"; exit 77; }
. "$(dirname "$0")/mpi_ranks.sh"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
# what it says of itself, which takes no ranks
"$parallel" --help >told || fail "--help: exit code $?"
"$parallel" reference man | tr -d '\\' >man
sed -n 's/^  \(-[a-z], \|    \)--\([a-z0-9-]*\).*/\2/p' told >options
grep -q memory options || fail "--help: $(cat told)"
while read -r option; do
    grep -q "fB--$option" man || fail "man: --$option is missing"
done <options
can_start || { echo "SKIPPED: '$mpiexec' starts no processes here: $(cat told)"; exit 77; }

# a network with a pool, a deep one, a detector of one joined output
same 3 mobilenet_v2 synthetic:97x113
same 2 resnet50 synthetic:33x65
same 4 yolov8n synthetic:96x64
# two outputs that are put together from maps, though one process computes them as tensors
same 3 blazeface synthetic:64x96
kind=npy same_exchanged block5 2 blazeface synthetic:128x128
# rows exchanged: at several maps, of more ranks than some have rows; where norms and pools came
# first, a stride and skips lie around, the last map grows
same_exchanged features.0,features.4 2 mobilenet_v2 synthetic:97x113 --keep features.6
same_exchanged map.1,map.7 4 fsrcnn synthetic:3x9
same_exchanged expanded_conv_3,logits/semantic 3 deeplab_v3 synthetic:65x97
# a round goes on from the rows of the one before: 16 squeeze-and-excitations in less than 4 times the
# work, that were made from the image each, inside a budget that starting there would not fit
ratio() { sed -n 's/.*"macs_ratio": \([0-9]*\).*/\1/p' "$1" | sort -n | tail -1; }
same 3 efficientnet_b0 synthetic:129x97
grep -q '^exchange   rows of [0-9]* maps, from ' told || fail "rounds without exchange: $(cat told)"
ranks 3 efficientnet_b0 synthetic:129x97 --memory 34MiB --json >fast 2>said || fail "rounds: $(cat said)"
grep -q "\"hash\": \"$(sed -n 's/^output .*hash //p' one)\"" fast || fail "rounds: another hash"
ranks 3 efficientnet_b0 synthetic:129x97 --exchange never --json >slow 2>said || fail "never: $(cat said)"
[ "$(ratio fast)" -lt 4 ] && [ "$(ratio slow)" -ge 12 ] || fail "rounds: $(cat fast slow)"
peak=$(sed -n 's/.*"peak_rss_bytes": \([0-9]*\).*/\1/p' fast | sort -n | tail -1)
[ "${peak:-99999999}" -le $((34 << 20)) ] || fail "rounds took $peak bytes, the budget is 34 MiB"
# which maps pay follows from the link; what is no such map is refused once, with the first and last
same 3 yolov8n synthetic:320x320
grep -q '^exchange   rows of model' told || fail "no exchange over a usual link: $(cat told)"
ranks 3 yolov8n synthetic:320x320 --exchange never >slow 2>said || fail "never: $(cat said)"
grep -q '^exchange   none' slow || fail "never: $(cat slow)"
ranks 3 yolov8n synthetic:320x320 --link-bandwidth 1 >slow 2>said || fail "a slow link: $(cat said)"
grep -q '^exchange   none' slow || fail "an exchange over a link of a byte a second: $(cat slow)"
# where the maps that would pay do not fit the budget there are none; they take 650 KB more, and what MPI
# takes differs from job to job, by as much now and then: the next job is held to this one's least again
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
    refused 4 'needs at least' 3 yolov8n synthetic:320x320 --exchange never --memory 1MiB
    least=$(sed -n 's/.*needs at least \([0-9]*\) bytes.*/\1/p' said | sort -n | tail -1)
    ranks 3 yolov8n synthetic:320x320 --memory $((least + 300000)) >slow 2>said &&
        grep -q '^exchange   none' slow && break
done
grep '^output ' slow | cmp -s - wanted || fail "a tight budget: $(cat slow said), not $(cat wanted)"
grep -q '^exchange   none' slow || fail "rows exchanged in a tight budget: $(cat slow)"
refused 2 "^rfexec-mpi: --exchange 'deconv': not all .* from 'feature_extraction.1' to 'expand.1'" 2 \
    fsrcnn synthetic:40x30 -o no.npy --exchange deconv
refused 2 "^rfexec-mpi: --exchange 'nix': there is no such map" 2 fsrcnn synthetic:40x30 --exchange nix
# several outputs, of fewer rows than ranks; a picture from rows that are sent, in several bands
same 4 posenet synthetic:33x49
kind=tif same 2 fsrcnn synthetic:300x200
# each rank by its own budget, the smallest possible one, and some for what MPI takes now and then
refused 4 'needs at least' 2 fsrcnn synthetic:300x200 --memory 1MiB -o no.npy
least=$(sed -n 's/.*needs at least \([0-9]*\) bytes.*/\1/p' said | sort -n | tail -1)
for more in 1 2 3 4 5 6 7 8; do
    budget=$((least + (more << 19)))
    ranks 2 fsrcnn synthetic:300x200 --memory $budget -o all.npy --json >told 2>said && break
done
grep -q "\"hash\": \"$(sed -n 's/^output .*hash //p' one)\"" told || fail "json: $(cat told said)"
peak=$(sed -n 's/.*"peak_rss_bytes": \([0-9]*\).*/\1/p' told | sort -n | tail -1)
[ "${peak:-$((budget + 1))}" -le "$budget" ] || fail "a rank took $peak bytes, its budget is $budget"
# each section within it too
exchange=shrink.1,map.3
refused 4 'needs at least' 2 fsrcnn synthetic:300x200 --memory 1MiB -o no.npy
least=$(sed -n 's/.*needs at least \([0-9]*\) bytes.*/\1/p' said | sort -n | tail -1)
for more in 0 1 2 3 4 5 6 7 8; do # the first section names its least, another may need some more
    budget=$((least + (more << 19)))
    ranks 2 fsrcnn synthetic:300x200 --memory $budget --json >told 2>said && break
done
grep -q "\"hash\": \"$(sed -n 's/^output .*hash //p' one)\"" told || fail "sections: $(cat told said)"
grep -q '"shrink.1"' told || fail "no rows were exchanged: $(cat told)"
peak=$(sed -n 's/.*"peak_rss_bytes": \([0-9]*\).*/\1/p' told | sort -n | tail -1)
[ "${peak:-$((budget + 1))}" -le "$budget" ] || fail "sections took $peak bytes, the budget is $budget"
exchange=''

# what all ranks find is said once; what one finds, with its number
refused 3 "^rfexec-mpi: model 'nosuch'" 2 nosuch synthetic:8x8
[ "$(grep -c "^rfexec-mpi: model" said)" = 1 ] || fail "said more than once: $(cat said)"
# a rank that sees another image at the same name
mkdir there
"$program" run fsrcnn synthetic:20x15 -o in.npy >told
"$program" run fsrcnn synthetic:20x15:7 -o there/in.npy >told
other="fsrcnn in.npy -o no.npy" through="env -C there"
refused 3 "rank 1: not of one run with rank 0: their 'input' differs" 1 fsrcnn in.npy -o no.npy
through=''
# an image of more than 256 MiB that a rank sees otherwise where the hash of the file does not look: two
# ranks read other values of a row, of which halos are made again, in sections and in a round of states
cat >pictures.py <<'END'
import struct, sys
for name, at in (("large.tif", -1), ("there/large.tif", 30)):
    tags = [(256, 3, 40), (257, 3, 60), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 2 << 20), (277, 3, 1),
            (278, 3, 60), (279, 4, 2400)]
    with open(name, "wb") as f:
        f.write(b"II*\0" + struct.pack("<IH", 8, len(tags)))
        for tag, kind, value in tags:
            f.write(struct.pack("<HHII", tag, kind, 1, value))
        f.write(struct.pack("<I", 0))
        f.seek(2 << 20)
        f.write(bytes((y * 7 + x * 3) % 251 ^ (y == at) for y in range(60) for x in range(40)))
        f.truncate(300 << 20)
END
python3 pictures.py
through="env -C there"
for words in "fsrcnn large.tif --exchange never" "fsrcnn large.tif --exchange map.3" "mobilenet_v2:0.25 large.tif"; do
    other="$words --channels 1,1,1 -o no.npy"
    # shellcheck disable=SC2086
    refused 3 'rank 1: has not read one image with rank 0: row 30 was another one' 1 $other
    other="$other --whole-input-hash"
    # shellcheck disable=SC2086
    refused 3 "rank 1: not of one run with rank 0: their 'input' differs" 1 $other
done
through=''
# a rank with other words: of options that shape work or files, of help; threads and memory are its own
for words in "synthetic:40x30:7 -o no.npy" "synthetic:40x30 --keep map.3 -o no.npy" \
    "synthetic:40x30 -o no.tif" "synthetic:40x30 -o no.npy --help"; do
    other="fsrcnn $words"
    refused 2 'rank 1: was started with other words than rank 0' 1 fsrcnn synthetic:40x30 -o no.npy
done
other=--help
refused 2 'other words than rank 0' 1 fsrcnn synthetic:40x30 -o no.npy
other="fsrcnn synthetic:40x30 --memory=64MiB -o words.npy -j2"
ranks 1 fsrcnn synthetic:40x30 -o words.npy >told 2>said || fail "a rank with its own memory: $(cat said)"
other=''
# a folder that is missing, before the first of many rounds
before=$(date +%s)
refused 5 'none/no.npy: cannot write' 2 unet_instance synthetic:768x768 -o none/no.npy
[ $(($(date +%s) - before)) -lt 20 ] || fail "a missing folder was noticed after all rounds"
# a file that may not grow as far as the second rank's rows, but as MPI's own do
other="fsrcnn synthetic:900x700 -o no.npy" limit=24000
refused 5 'rank 1: no.npy: writing failed' 1 fsrcnn synthetic:900x700 -o no.npy
# a rank without room for its rows of the map
mkdir rows
exchange=map.3 other="fsrcnn synthetic:900x700 -o no.npy --exchange map.3 --memory 64MiB --spill rows" limit=24000
refused 5 "rank 1: rows/rows: no room for the [0-9]* bytes" 1 fsrcnn synthetic:900x700 -o no.npy
exchange=''
# where ranks are of several machines the temporary has a name in the folder
limit=''
if as_elsewhere; then
    "$program" run fsrcnn synthetic:40x30 -j 1 -o whole.npy >one
    other="fsrcnn synthetic:40x30 -o all.npy"
    ranks 2 fsrcnn synthetic:40x30 -o all.npy >told 2>said || fail "another machine: $(cat said)"
    cmp whole.npy all.npy || fail "another machine: other bytes"
    nothing_left
    through=''
fi
# a rank that is killed while the file is written
other="fsrcnn synthetic:3000x2000 --memory 64MiB -o no.npy"
begin 1 fsrcnn synthetic:3000x2000 --memory 64MiB -o no.npy
wait_for_temporary
kill_rank
nothing_left
# rank 0 tells how far its share is, others are silent
other="resnet50 synthetic:12000x8000 --memory 512MiB"
begin 1 resnet50 synthetic:12000x8000 --memory 512MiB
wait_for_line '^rfexec-mpi: rank 0: its share of [a-z0-9 ]*: [0-9]* %, [0-9:]* left$'
if grep 'rank 1: its share' said; then fail "a rank other than 0 tells of its progress"; fi
kill_rank
# one that is killed while others wait for its rows
exchange=map.3
other="fsrcnn synthetic:1600x1200 -o no.npy --exchange map.3 --memory 64MiB --spill rows"
begin 2 fsrcnn synthetic:1600x1200 -o no.npy
wait_for_temporary "$PWD/rows"
kill -STOP "$(cat pid)" || fail "the rank had ended before it was stopped"
wait_for_line '^rfexec-mpi: rank 0: has waited 10 s for the other ranks$'
kill_rank
[ -s said ] || fail "a rank killed in the exchange, and no message"
nothing_left
[ -z "$(ls -A rows)" ] || fail "rows are left: $(ls -A rows)"
echo "test_mpi: passed"
