# Helpers of the build: flags, folder targets, kernel variants, the generated ONNX reader.

set(RFX_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wswitch-enum -Wcast-qual -Wwrite-strings -Wundef -Wformat=2)

# -ffp-contract=off: a fused multiply-add happens only where the source asks for one, so that the
# vector body and the remainder of a loop do the same arithmetic.
function(rfx_set_flags target)
  target_compile_options(${target} PRIVATE ${RFX_WARNINGS} -ffp-contract=off -fno-math-errno
                         $<$<CONFIG:Release>:-O3>)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  if(RFX_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(RFX_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined
                           -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_compile_definitions(${target} PRIVATE RFX_SANITIZE=1)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

# A static library rfx_<folder> of all .c files directly in the folder.
function(rfx_add_folder folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c
       ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*/*.c)
  list(FILTER sources EXCLUDE REGEX "/kernels/")
  add_library(rfx_${folder} STATIC ${sources})
  rfx_set_flags(rfx_${folder})
  target_include_directories(rfx_${folder} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# Compiles <folder>/kernels/*.inc.c once per instruction set; kernel_table.c picks at run time.
function(rfx_add_kernels folder)
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/kernels/*.c)
  if(NOT kernels)
    return()
  endif()
  set(variants "base:")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND variants "avx2:-march=x86-64-v3" "avx512:-march=x86-64-v4")
  endif()
  foreach(variant IN LISTS variants)
    string(REGEX REPLACE ":.*" "" name ${variant})
    string(REGEX REPLACE "^[^:]*:" "" flags ${variant})
    add_library(rfx_kernels_${name} OBJECT ${kernels})
    rfx_set_flags(rfx_kernels_${name})
    target_include_directories(rfx_kernels_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(rfx_kernels_${name} PRIVATE RFX_KERNEL_VARIANT=${name})
    # No value depends on floating point traps; without them the compiler can vectorise selects.
    target_compile_options(rfx_kernels_${name} PRIVATE -fno-trapping-math ${flags})
    if(name STREQUAL "avx512")
      target_compile_options(rfx_kernels_${name} PRIVATE -mprefer-vector-width=512)
    endif()
    target_sources(rfx_${folder} PRIVATE $<TARGET_OBJECTS:rfx_kernels_${name}>)
  endforeach()
endfunction()

# Generates the nanopb reader of ONNX files from libonnx-dev's onnx.proto and rfexec/onnx.options.
function(rfx_add_onnx_proto target)
  find_program(NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator REQUIRED)
  find_path(NANOPB_INCLUDE_DIR pb.h REQUIRED)
  find_library(NANOPB_LIBRARY protobuf-nanopb REQUIRED)
  find_file(ONNX_PROTO onnx/onnx.proto PATHS /usr/include REQUIRED)
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
  set(options ${CMAKE_CURRENT_SOURCE_DIR}/rfexec/onnx.options)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(
    OUTPUT ${dir}/onnx.pb.c ${dir}/onnx.pb.h
    COMMAND ${CMAKE_COMMAND} -E copy ${ONNX_PROTO} ${dir}/onnx.proto
    COMMAND ${NANOPB_GENERATOR} -q -f ${options} -I ${dir} -D ${dir} onnx.proto
    WORKING_DIRECTORY ${dir}
    DEPENDS ${ONNX_PROTO} ${options})
  add_library(rfx_onnx_proto OBJECT ${dir}/onnx.pb.c ${dir}/onnx.pb.h)
  target_include_directories(rfx_onnx_proto PUBLIC ${dir} SYSTEM PUBLIC ${NANOPB_INCLUDE_DIR})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:rfx_onnx_proto>)
  target_include_directories(${target} SYSTEM PRIVATE ${dir} ${NANOPB_INCLUDE_DIR})
  add_dependencies(${target} rfx_onnx_proto)
  target_link_libraries(${target} PRIVATE ${NANOPB_LIBRARY})
endfunction()
