# Helpers of the build: flags, folder targets, kernel variants, the generated ONNX reader.

set(RFX_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wswitch-enum -Wcast-qual -Wwrite-strings -Wundef -Wformat=2)

# What makes a memory error end the process instead of being used: checked calls of the C library
# where a size is known (level 3 where compiler and library have it), guarded stacks, tables of
# addresses that are bound at the start and read-only after it, and programs that lie anywhere.
# tests/cli/test_binaries.sh reads them in the binaries.
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("
#include <features.h>
#include <string.h>
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error level 2
#endif
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 3
#error level 2
#endif
int main(void) { return 0; }" RFX_HAVE_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(RFX_FORTIFY 2)
if(RFX_HAVE_FORTIFY_3)
  set(RFX_FORTIFY 3)
endif()

# The code asks for RFX_SANITIZE, of any kind, or for the one that it means.
set(RFX_SANITIZERS address,undefined)
set(RFX_SANITIZER_DEFINITIONS RFX_SANITIZE=1 RFX_SANITIZE_ADDRESS=1)
if(RFX_SANITIZE STREQUAL "thread")
  set(RFX_SANITIZERS thread)
  set(RFX_SANITIZER_DEFINITIONS RFX_SANITIZE=1 RFX_SANITIZE_THREAD=1)
endif()

# The sanitizers have checks of their own; nothing is checked where nothing is optimised.
function(rfx_harden target)
  target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack)
  if(NOT RFX_SANITIZE)
    target_compile_options(${target} PRIVATE -fstack-protector-strong
                           "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${RFX_FORTIFY}>")
  endif()
endfunction()

# -ffp-contract=off: a fused multiply-add happens only where the source asks for one, so that the
# vector body and the remainder of a loop do the same arithmetic. rfx_optimize.cmake names the
# sources whose level is not -O2.
function(rfx_set_flags target)
  target_compile_options(${target} PRIVATE ${RFX_WARNINGS} -ffp-contract=off -fno-math-errno
                         $<$<CONFIG:Release>:-O2>)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  rfx_harden(${target})
  if(RFX_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(RFX_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${RFX_SANITIZERS}
                           -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_compile_definitions(${target} PRIVATE ${RFX_SANITIZER_DEFINITIONS})
    target_link_options(${target} PUBLIC -fsanitize=${RFX_SANITIZERS})
  endif()
  if(RFX_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link,float-cast-overflow)
  endif()
endfunction()

# A library rfx_<folder>, of RFX_FOLDER_KIND, of all .c files in the folder and below, but for the
# kernels that are compiled per instruction set.
function(rfx_add_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
       ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c)
  foreach(regex IN ITEMS "/kernels/.*/" LISTS RFX_LEFT_OUT)
    list(FILTER sources EXCLUDE REGEX ${regex})
  endforeach()
  add_library(rfx_${folder} ${RFX_FOLDER_KIND} ${sources})
  rfx_optimize(${sources})
  rfx_set_flags(rfx_${folder})
  if(NOT RFX_SANITIZE) # librfexec leaves out what only the program calls
    target_compile_options(rfx_${folder} PRIVATE -ffunction-sections -fdata-sections)
  endif()
  target_include_directories(rfx_${folder} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# The sources of the kernels, by where they are compiled. A file that is written for one instruction
# set stands in that set's list alone, and so does a flag; generic files are written with the
# compiler's vectors and stand in every list.
set(RFX_KERNELS_GENERIC generic/bytes.c generic/channel_norm.c generic/conv.c generic/dense.c
    generic/depthwise.c generic/elementwise.c generic/exact.c generic/int_conv.c generic/int_depthwise.c
    generic/lanes.c generic/peak.c generic/peak_int.c generic/pixels.c generic/planes.c generic/pool.c
    generic/table.c generic/winograd.c)
set(RFX_KERNELS_AVX2 ${RFX_KERNELS_GENERIC})
set(RFX_KERNELS_AVX512 ${RFX_KERNELS_GENERIC})
set(RFX_KERNELS_AVX2_FLAGS -march=x86-64-v3)
set(RFX_KERNELS_AVX512_FLAGS -march=x86-64-v4 -mprefer-vector-width=512)
# Sets that have the kernels of another set (RFX_KERNELS_<SET>_LIKE), except these.
set(RFX_KERNELS_AVXVNNI generic/int_conv.c generic/int_depthwise_bytes.c generic/peak_int.c generic/table.c)
set(RFX_KERNELS_AVX512VNNI ${RFX_KERNELS_AVXVNNI})
set(RFX_KERNELS_AVXVNNI_LIKE avx2)
set(RFX_KERNELS_AVX512VNNI_LIKE avx512)
set(RFX_KERNELS_AVXVNNI_FLAGS ${RFX_KERNELS_AVX2_FLAGS} -mavxvnni)
set(RFX_KERNELS_AVX512VNNI_FLAGS ${RFX_KERNELS_AVX512_FLAGS} -mavx512vnni)

set(RFX_KERNELS_NEON ${RFX_KERNELS_GENERIC}) # AArch64 has NEON and fused multiply-add always: no flags
set(RFX_KERNELS_BASE ${RFX_KERNELS_GENERIC}) # without fused multiply-add

# The instruction sets that are built for this processor, best first; the last one runs on all.
set(rfx_kernel_sets base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(PREPEND rfx_kernel_sets avx512vnni avx512 avxvnni avx2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(rfx_kernel_sets neon)
endif()
set(RFX_KERNEL_SETS ${rfx_kernel_sets} CACHE STRING
    "Instruction sets with kernels of their own, best first; the last one runs on all processors")
if(RFX_SANITIZE STREQUAL "thread") # threads do the same with every set, and clang takes long for each
  list(REMOVE_ITEM RFX_KERNEL_SETS avx512vnni avx512)
endif()

# Compiles <folder>/kernels/<source> once per instruction set that has it in its list, and tells
# kernel_table.c by RFX_KERNELS_HAVE_<SET> which there are to pick from.
function(rfx_add_kernels folder)
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/kernels)
  foreach(set IN LISTS RFX_KERNEL_SETS)
    string(TOUPPER ${set} SET)
    list(TRANSFORM RFX_KERNELS_${SET} PREPEND ${folder}/kernels/ OUTPUT_VARIABLE sources)
    set(target rfx_kernels_${set})
    add_library(${target} OBJECT ${sources})
    rfx_set_flags(${target})
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    set(variant ${set})
    if(RFX_KERNELS_${SET}_LIKE)
      set(variant ${RFX_KERNELS_${SET}_LIKE})
    endif()
    target_compile_definitions(${target} PRIVATE RFX_KERNEL_VARIANT=${variant} RFX_KERNEL_SET=${set})
    # No value depends on floating point traps; without them the compiler can vectorise selects.
    # clang says where it does not vectorise, as with the checks of some sanitizers.
    target_compile_options(${target} PRIVATE -fno-trapping-math ${RFX_KERNELS_${SET}_FLAGS}
                           $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>)
    if(RFX_FUZZ) # clang takes minutes for unrolled loops with checks in them
      target_compile_options(${target} PRIVATE -O0)
    else()
      rfx_optimize(${sources})
    endif()
    target_sources(rfx_${folder} PRIVATE $<TARGET_OBJECTS:${target}>)
    target_compile_definitions(rfx_${folder} PRIVATE RFX_KERNELS_HAVE_${SET}=1)
    set_property(GLOBAL APPEND PROPERTY RFX_KERNEL_TARGETS ${target})
  endforeach()
  rfx_check_kernel_lists(${dir})
endfunction()

# A source that no list names would never be compiled, and nobody would notice.
function(rfx_check_kernel_lists dir)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${dir} ${dir}/*/*.c)
  list(REMOVE_ITEM found ${RFX_KERNELS_GENERIC} ${RFX_KERNELS_AVX2} ${RFX_KERNELS_AVX512} ${RFX_KERNELS_AVXVNNI}
       ${RFX_KERNELS_NEON})
  if(found)
    message(FATAL_ERROR "no list in rfx_helpers.cmake names these kernels: ${found}")
  endif()
endfunction()

# Generates the nanopb reader of ONNX files from libonnx-dev's onnx.proto and rfexec/onnx/file/onnx.options.
function(rfx_add_onnx_proto target)
  find_program(NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator REQUIRED)
  find_path(NANOPB_INCLUDE_DIR pb.h REQUIRED)
  find_library(NANOPB_LIBRARY protobuf-nanopb REQUIRED)
  find_file(ONNX_PROTO onnx/onnx.proto PATHS /usr/include REQUIRED)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(options ${CMAKE_CURRENT_SOURCE_DIR}/rfexec/onnx/file/onnx.options)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(
    OUTPUT ${dir}/onnx.pb.c ${dir}/onnx.pb.h
    COMMAND ${CMAKE_COMMAND} -E copy ${ONNX_PROTO} ${dir}/onnx.proto
    COMMAND ${NANOPB_GENERATOR} -q -f ${options} -I ${dir} -D ${dir} onnx.proto
    WORKING_DIRECTORY ${dir}
    DEPENDS ${ONNX_PROTO} ${options})
  add_library(rfx_onnx_proto OBJECT ${dir}/onnx.pb.c ${dir}/onnx.pb.h)
  rfx_harden(rfx_onnx_proto)
  target_include_directories(rfx_onnx_proto PUBLIC ${dir} SYSTEM PUBLIC ${NANOPB_INCLUDE_DIR})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:rfx_onnx_proto>)
  target_include_directories(${target} SYSTEM PRIVATE ${dir} ${NANOPB_INCLUDE_DIR})
  add_dependencies(${target} rfx_onnx_proto)
  target_link_libraries(${target} PRIVATE ${NANOPB_LIBRARY})
endfunction()

# Makes a file a part of programs: a library that has the file's text as `symbol`.
function(rfx_add_text target symbol file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/generated/${symbol}.c)
  file(GENERATE OUTPUT ${source} CONTENT
       "extern const char ${symbol}[];\nconst char ${symbol}[] = {${bytes}0};\n")
  add_library(${target} STATIC ${source})
  rfx_set_flags(${target})
endfunction()
