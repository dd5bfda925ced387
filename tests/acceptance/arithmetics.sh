# For verify_matrix.sh and verify_plans.sh: what computes convolutions, and in which forms. KERNELS and
# CORES in the environment narrow them.

# CHOICE ...: CHOICE:SET for each of its forms, SET being an instruction set or a core type of OpenBLAS.
arithmetics() {
    for choice in "$@"; do
        case $choice in
            openblas) sets=${CORES:-Haswell Zen SkylakeX Prescott} ;;
            *) sets=${KERNELS:-avx512 avx2} ;;
        esac
        for one in $sets; do echo "$choice:$one"; done
    done
}

# The variable that gives $conv its form $set.
environment() {
    case $conv in
        openblas) echo "OPENBLAS_CORETYPE=$set" ;;
        *) echo "RFX_KERNELS=$set" ;;
    esac
}
