# The second demo, a part of tools/demo.sh: a U-Net with instance norms, which take the statistics of
# the whole picture, on 12000 x 9000 pixels inside 128 MiB. Proves the bits, and shows what tiles make
# of it that have all the halo they need, but statistics of their own. Needs about 3.6 GiB of memory,
# for the untiled proof only. SIZE=3000x4000 makes it shorter.
# shellcheck shell=sh
# shellcheck disable=SC2154 # $out, $seed and $begin are those of tools/demo.sh

size=${SIZE:-12000x9000}
budget=128MiB
model=data/phase_net.onnx

say "Make a micrograph of $size pixels: three phases, contrast as it happens to be, seed $seed"
build/tools/demo/rfx-make-micrograph "$size" "$out/section.png" --mask "$out/phases.png" \
    --seed "$seed"
echo "$(($(wc -c <"$out/section.png") / 1000000)) MB: $out/section.png; the truth: $out/phases.png"

say "Tell the phases apart with $model inside $budget, the whole process counted"
build/rfexec run "$model" "$out/section.png" --memory "$budget" -o "$out/section.npy" \
    >"$out/norms.txt"
cat "$out/norms.txt"
awk '$1 == "measured" { ok = $3 == "KiB" || ($3 == "MiB" && $2 <= 128) } END { exit !ok }' \
    "$out/norms.txt" || fail "the peak of the process is above $budget"

say "Prove the bits against the untiled run"
build/rfexec verify "$model" "$out/section.png" --memory "$budget" >"$out/norms_verify.txt" || {
    cat "$out/norms_verify.txt"
    fail "the streamed and the untiled run differ, or could not be compared"
}
cat "$out/norms_verify.txt"
hash=$(hash_of "$out/norms.txt")
[ -n "$hash" ] && [ "$hash" = "$(hash_of "$out/norms_verify.txt")" ] ||
    fail "the map that was written is not the one that was verified"

say "Compare with tiles that have their halo, but norms of their own"
build/tools/demo/rfx-compare-tiles "$model" "$out/section.png" "$out/section.npy" \
    --truth "$out/phases.png" --figure "$out/norms.png"
echo "picture, its phases, those of tiles, and where they differ: $out/norms.png"

printf '\nDemo done in %d s.\n' "$(($(date +%s) - begin))"
