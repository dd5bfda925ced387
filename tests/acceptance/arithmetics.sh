# For verify_matrix.sh and verify_plans.sh: what computes convolutions, and in which forms. KERNELS and
# CORES in the environment narrow them.

# Whether this processor can run a form.
runs() {
    case $1 in
        avx512 | SkylakeX) grep -qsw avx512f /proc/cpuinfo ;;
    esac
}

# CHOICE ...: CHOICE:SET for each of its forms, SET being an instruction set or a core type of OpenBLAS.
arithmetics() {
    for choice in "$@"; do
        case $choice in
            openblas) sets=${CORES:-Haswell Zen SkylakeX Prescott} ;;
            *) sets=${KERNELS:-avx512 avx2} ;;
        esac
        for one in $sets; do
            if runs "$one"; then
                echo "$choice:$one"
            else
                echo "$choice:$one: skipped, not on this processor" >&2
            fi
        done
    done
}

# The variable that gives $conv its form $set.
environment() {
    case $conv in
        openblas) echo "OPENBLAS_CORETYPE=$set" ;;
        *) echo "RFX_KERNELS=$set" ;;
    esac
}
