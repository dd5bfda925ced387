#!/bin/sh
# The same bits with AVX-512 and with its dot products of bytes (VNNI), on a processor without them: links
# tests of the kernels statically and runs them under Bochs, an emulator of processors. No system is
# booted: tests/emulated has what the programs need. Bochs is slow: 12 random layers take half a minute,
# the tests of all kernels far longer.
#
#     sh tools/test_avx512.sh [MODEL.onnx]   # MODEL: one more network, compared with the avx2 kernels
#
# Uses the folder build, and installs what is missing where it may (root or sudo); else says what that is
# and exits with 77. The last line is "N passed, N failed". RFX_CASES (40) chooses the number of random
# layers; integer kernels have five times as many cases each.
set -eu
cd "$(dirname "$0")/.."
. tools/count_tests.sh

packages="bochs bochs-term bochsbios vgabios isolinux syslinux-common xorriso bsdutils"
missing() {
    for package in $packages; do
        status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || printf ' %s' "$package"
    done
}

lacking=$(missing)
if [ -n "$lacking" ]; then
    if [ "$(id -u)" -eq 0 ]; then as_root=""; else as_root="sudo -n"; fi
    echo "installing:$lacking"
    # $as_root and $packages are lists of words on purpose.
    # shellcheck disable=SC2086
    if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
        --no-install-recommends $packages >/dev/null 2>&1; then
        echo "missing packages:$lacking"
        echo "as root: apt-get update && apt-get install --no-install-recommends$lacking"
        exit 77
    fi
fi

build=build
here=$PWD/tests/emulated
work=$(mktemp -d)
trap 'rm -rf "$work" ${own_failures:+"$own_failures"}' EXIT
[ -f $build/build.ninja ] || [ -f $build/Makefile ] || cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release
run_counted "build" cmake --build $build --parallel "$(nproc)" \
    --target rfexec unit_layers_kernels unit_layers_conv || true

# link PROGRAM OBJECT ...: statically, with POSIX threads instead of those of OpenMP: when no thread can be
# started, they go on with one.
link() {
    program=$1
    shift
    # shellcheck disable=SC2046
    cc -O1 -w -D_GNU_SOURCE -I. -static -no-pie -Wl,-Ttext-segment=0x10000000 \
        -Wl,--allow-multiple-definition -Wl,--gc-sections -o "$work/$program" "$@" \
        layers/core/team_start_posix.c -Wl,--start-group $build/librfx_*.a \
        $(find $build/tests -name librfx_test_support.a) \
        $(find $build/CMakeFiles -path '*rfx_onnx_proto*' -name '*.o') -Wl,--end-group \
        -ljansson -lprotobuf-nanopb -lxxhash -lpng -lz -ljpeg -ltiff -lgomp -lm -lpthread \
        2>"$work/link.log" || {
        grep -E "undefined|cannot find" "$work/link.log" | head -n 5
        return 1
    }
}

# emulate PROGRAM SECONDS ENVIRONMENT ARGUMENTS [FILE]: prints what the program prints. ENVIRONMENT and
# ARGUMENTS: C strings, each with a comma behind it.
emulate() {
    rm -rf "$work/disk"
    mkdir -p "$work/disk/isolinux"
    cp "$work/$1" "$work/program.elf"
    cp "${5:-/dev/null}" "$work/file.bin" 2>/dev/null || : >"$work/file.bin"
    (
        cd "$work"
        cc -O2 -c -w -mcmodel=large -fno-pic -ffreestanding -mno-red-zone -mgeneral-regs-only \
            -fno-stack-protector "-DENVIRONMENT=$3" "-DARGUMENTS=$4" "$here/kernel.c"
        cc -c -I"$work" -Wa,-I"$work" "$here/boot.S"
        ld -n -z noexecstack --no-warn-rwx-segments -T "$here/link.ld" -o kernel.elf boot.o kernel.o
        objcopy -O binary kernel.elf disk/kernel.bin
        cp /usr/lib/ISOLINUX/isolinux.bin disk/isolinux
        for part in ldlinux mboot libcom32; do
            cp /usr/lib/syslinux/modules/bios/$part.c32 disk/isolinux
        done
        printf 'DEFAULT x\nPROMPT 0\nLABEL x\n KERNEL mboot.c32\n APPEND /kernel.bin\n' \
            >disk/isolinux/isolinux.cfg
        xorriso -as mkisofs -quiet -o disk.iso -b isolinux/isolinux.bin -c isolinux/boot.cat \
            -no-emul-boot -boot-load-size 4 -boot-info-table disk 2>xorriso.log
        cat >machine <<EOF
config_interface: textconfig
display_library: term
memory: guest=2048, host=2048
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
boot: cdrom
ata0-master: type=cdrom, path=disk.iso, status=inserted
cpu: model=corei7_icelake_u, ips=50000000
clock: sync=none
com1: enabled=1, mode=file, dev=serial.txt
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
EOF
        echo c >commands # of Bochs's debugger: continue
        : >serial.txt
        TERM=xterm timeout "$2" script -qfc "stty rows 30 cols 100; bochs -q -f machine -rc commands" \
            terminal.txt >/dev/null 2>&1 </dev/null || true
        cat serial.txt
    )
}

# Fails unless the program ends by itself, with exit code 0.
expect_success() {
    emulate "$@" | tee "$work/said"
    grep -q '^exit code 000$' "$work/said"
}

test_program() { # FOLDER TEST ENVIRONMENT
    echo "int $2_main(void); int main(void) { return $2_main(); }" >"$work/main.c"
    link "$2" "$work/main.c" "$here/cmocka_small.c" \
        "$(find $build/tests/CMakeFiles/unit_"$1".dir -name "$2.c.o")" &&
        expect_success "$2" 1800 "$3" ''
}

network() { # KERNELS FILE
    want=$(RFX_KERNELS=avx2 $build/rfexec run "$2" synthetic:96x96 | grep -oE 'hash [0-9a-f]+')
    got=$(emulate rfexec 900 "\"RFX_KERNELS=$1\"," '"run","/file.onnx","synthetic:96x96",' "$2" |
        grep -oE 'hash [0-9a-f]+')
    echo "avx2, on this processor: $want; $1, emulated: $got"
    [ -n "$want" ] && [ "$want" = "$got" ]
}

cases=${RFX_CASES:-40}
for test in test_int_kernels test_kernels test_kernel_logic test_peak_int; do
    run_counted "$test" test_program layers_kernels $test "\"RFX_CASES=$((5 * cases))\"," || true
done
for kernels in avx512 avx512vnni; do
    run_counted "test_conv_int, $kernels" test_program layers_conv test_conv_int \
        "\"RFX_KERNELS=$kernels\",\"RFX_CASES=$cases\"," || true
done
run_counted "rfexec, linked statically" link rfexec \
    $build/CMakeFiles/rfexec.dir/tools/cli/main.c.o || true
run_counted "selftest, avx512" expect_success rfexec 900 '"RFX_KERNELS=avx512",' \
    '"selftest","fsrcnn",' || true
for model in "$@"; do
    for kernels in avx512 avx512vnni; do
        run_counted "$model, $kernels" network $kernels "$model" || true
    done
done
report_counts
