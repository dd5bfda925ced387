# What librfexec can be built without. An option that is OFF names source files, by regular
# expressions, that are not compiled, and libraries that are neither looked for nor linked.
# rfx_build.h tells the code which options are ON.
include(CMakeDependentOption)

set(RFX_PARTS)         # all options
set(RFX_LEFT_OUT)      # regular expressions of sources, from the top of the tree, that are not compiled
set(RFX_LIBRARIES)     # targets that librfexec links
set(RFX_LIBRARY_NAMES) # the same as a linker's -l takes them

# name, what it is, the option without which it is OFF ("" for none), then the sources that it brings.
macro(rfx_part name what needs)
  list(APPEND RFX_PARTS RFX_WITH_${name})
  if("${needs}" STREQUAL "")
    option(RFX_WITH_${name} "${what}" ON)
  else()
    cmake_dependent_option(RFX_WITH_${name} "${what}" ON "RFX_WITH_${needs}" OFF)
  endif()
  if(NOT RFX_WITH_${name})
    list(APPEND RFX_LEFT_OUT ${ARGN})
  endif()
endmacro()

# A library that is linked, by its target and its name.
macro(rfx_link_part target name)
  list(APPEND RFX_LIBRARIES ${target})
  list(APPEND RFX_LIBRARY_NAMES ${name})
endmacro()

rfx_part(OPENMP "Threads of OpenMP; OFF: POSIX threads" "" /core/team_start_openmp)
rfx_part(OPENBLAS "OpenBLAS for matrix products, loaded when a network needs it" OPENMP /conv/blas.c)
rfx_part(JSON "Plan files, files of shards, heads and areas, rounds of states, by jansson" ""
         /plan/plan_file /plan/json_reader /shards/shard_ /api/rounds /output/head_file
         /answers/areas_file)
rfx_part(BUILTINS "The built-in networks" "" rfexec/builtin/)
rfx_part(PNG "PNG pictures and outputs, by libpng" "" /image_png /interlaced_png /output/image_write)
rfx_part(JPEG "JPEG pictures, by libjpeg" "" /image_jpeg /progressive_jpeg)
rfx_part(TIFF "TIFF pictures and outputs, by libtiff, which is loaded when one is opened" ""
         /image/tiff/ /geo_tiff /output/tiff /output/ome/)
rfx_part(WEBP "WebP pictures, by libwebp, which is loaded when one is opened" "" /image_webp)
rfx_part(JPEG2000 "JPEG 2000 pictures, by OpenJPEG, which is loaded when one is opened" "" /image_jp2)
rfx_part(STB "BMP, GIF, PIC, PNM, PSD and TGA pictures, by stb_image" "" /image_stb /image_bmp_rle)
rfx_part(ZARR "Zarr pictures and outputs, by zlib and jansson" JSON /zarr/)
rfx_part(ANSWERS "Files of regions and boxes: GeoJSON, CSV, JSON" "" rfexec/answers/)
rfx_part(SLIDES "Slides of microscopes, by OpenSlide, which is loaded when one is opened" "" /slides/)

# Files that stand for what is left out.
foreach(pair OPENMP:/core/team_start_posix OPENBLAS:/conv/no_blas JSON:/api/no_rounds
        JSON:/plan/no_plan_file JSON:/output/no_head_file
        JSON:/answers/no_areas_file BUILTINS:/run/no_builtins)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 source)
  if(RFX_WITH_${name})
    list(APPEND RFX_LEFT_OUT ${source})
  endif()
endforeach()

# The program and the tests use all parts.
set(rfx_missing ${RFX_PARTS})
foreach(part IN LISTS RFX_PARTS)
  if(${part})
    list(REMOVE_ITEM rfx_missing ${part})
  endif()
endforeach()
cmake_dependent_option(RFX_BUILD_PROGRAM "Build the program rfexec; OFF: librfexec alone" ON
                       "NOT rfx_missing" OFF)
if(rfx_missing)
  list(JOIN rfx_missing ", " rfx_words)
  message(STATUS "librfexec alone is built: the program and the tests need what is OFF, ${rfx_words}")
endif()
if(NOT RFX_BUILD_PROGRAM) # what only the program calls, and built-in networks on bytes
  list(APPEND RFX_LEFT_OUT /image_pages.c)
  if(NOT RFX_WITH_BUILTINS)
    list(APPEND RFX_LEFT_OUT /onnx/export/ rfexec/quantise/)
  endif()
endif()
foreach(what "TESTS;the tests" "MPI;rfexec-mpi where MPI is found" "DEMO;the programs of tools/demo.sh")
  list(POP_FRONT what name)
  cmake_dependent_option(RFX_BUILD_${name} "Build ${what}" ${PROJECT_IS_TOP_LEVEL} RFX_BUILD_PROGRAM OFF)
endforeach()

# What is loaded when it is needed is not linked: its header is enough.
set(RFX_INCLUDE_DIRS)
find_package(PkgConfig)
if(RFX_WITH_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS C)
  set(RFX_THREAD_LIBRARY OpenMP::OpenMP_C)
  rfx_link_part(OpenMP::OpenMP_C "${OpenMP_C_LIB_NAMES}")
else()
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  set(RFX_THREAD_LIBRARY Threads::Threads)
  rfx_link_part(Threads::Threads pthread)
endif()
if(RFX_WITH_OPENBLAS)
  pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas) # also where it is
endif()
if(RFX_WITH_JSON)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  rfx_link_part(PkgConfig::JANSSON jansson)
endif()
if(RFX_WITH_PNG)
  find_package(PNG REQUIRED)
  rfx_link_part(PNG::PNG png)
endif()
if(RFX_WITH_JPEG)
  find_package(JPEG REQUIRED)
  rfx_link_part(JPEG::JPEG jpeg)
endif()
if(RFX_WITH_PNG OR RFX_WITH_ZARR)
  find_package(ZLIB REQUIRED) # which libpng brings
  rfx_link_part(ZLIB::ZLIB z)
endif()
if(RFX_WITH_TIFF)
  find_package(TIFF 4.5 REQUIRED)
  list(APPEND RFX_INCLUDE_DIRS ${TIFF_INCLUDE_DIRS})
endif()
if(RFX_WITH_STB)
  find_path(STB_INCLUDE_DIR stb_image.h PATH_SUFFIXES stb REQUIRED)
  list(APPEND RFX_INCLUDE_DIRS ${STB_INCLUDE_DIR})
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # inlined
list(APPEND RFX_INCLUDE_DIRS ${XXHASH_INCLUDE_DIR})

set(rfx_here ${RFX_PARTS})
if(rfx_missing)
  list(REMOVE_ITEM rfx_here ${rfx_missing})
endif()
if(RFX_WITH_JPEG2000)
  pkg_check_modules(OPENJPEG libopenjp2)
  if(OPENJPEG_FOUND)
    list(APPEND RFX_INCLUDE_DIRS ${OPENJPEG_INCLUDE_DIRS})
  else()
    message(STATUS "no header of OpenJPEG (libopenjp2-7-dev): JPEG 2000 pictures are refused")
    list(APPEND RFX_LEFT_OUT /image_jp2)
    list(REMOVE_ITEM rfx_here RFX_WITH_JPEG2000)
  endif()
endif()
set(rfx_build_defines "")
foreach(part IN LISTS RFX_PARTS)
  set(value 0)
  if(part IN_LIST rfx_here)
    set(value 1)
  endif()
  string(APPEND rfx_build_defines "#define ${part} ${value}\n")
endforeach()
set(RFX_GENERATED_DIR ${CMAKE_CURRENT_BINARY_DIR}/generated/build)
configure_file(${CMAKE_CURRENT_LIST_DIR}/rfx_build.h.in ${RFX_GENERATED_DIR}/rfx_build.h @ONLY)
