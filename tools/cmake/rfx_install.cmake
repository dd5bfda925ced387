# The installed library: librfexec (shared and static) from the objects of all folders, the public
# header rfexec/rfexec.h, rfexec.pc, and a CMake package with the target rfexec::rfexec.
include(CMakePackageConfigHelpers)

# Installed files find the OpenMP flavour of OpenBLAS when they load it, whichever the system's
# default is.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
foreach(dir IN LISTS OPENBLAS_LIBRARY_DIRS)
  string(REGEX REPLACE "/+$" "" dir "${dir}")
  list(APPEND CMAKE_INSTALL_RPATH "${dir}")
endforeach()
# And built ones by the same path: CMake fills up a build's own with colons, to have room for the
# installed one, and an empty element of a path makes the loader search the current folder.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
if(RFX_FOLDER_KIND STREQUAL "SHARED")
  list(APPEND CMAKE_INSTALL_RPATH "${CMAKE_CURRENT_BINARY_DIR}")
endif()
set(rfx_objects)
foreach(folder layers rf_analysis tiler rfexec)
  list(APPEND rfx_objects $<TARGET_OBJECTS:rfx_${folder}>)
endforeach()
# A folder's own objects only: the object libraries that it takes in are named here.
get_property(rfx_kernel_targets GLOBAL PROPERTY RFX_KERNEL_TARGETS)
foreach(part IN LISTS rfx_kernel_targets ITEMS rfx_onnx_proto)
  list(APPEND rfx_objects $<TARGET_OBJECTS:${part}>)
endforeach()

function(rfx_add_library target kind export_name)
  add_library(${target} ${kind} ${rfx_objects})
  rfx_harden(${target})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME rfexec
                        EXPORT_NAME ${export_name})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  foreach(folder layers rf_analysis tiler rfexec)
    add_dependencies(${target} rfx_${folder})
  endforeach()
  install(TARGETS ${target} EXPORT rfexec_targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endfunction()

rfx_add_library(rfx_library SHARED rfexec)
set_target_properties(rfx_library PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(rfx_library PRIVATE ${RFX_LIBRARIES} ${NANOPB_LIBRARY} m ${CMAKE_DL_LIBS})
# Nothing but what the public header declares: not what static libraries bring along either.
target_link_options(rfx_library PRIVATE -Wl,--exclude-libs,ALL)
if(NOT RFX_SANITIZE) # whose runtime is the program's
  target_link_options(rfx_library PRIVATE -Wl,--no-undefined -Wl,--gc-sections)
endif()
if(RFX_SANITIZE)
  target_link_options(rfx_library PRIVATE -fsanitize=${RFX_SANITIZERS})
endif()
if(RFX_FOLDER_KIND STREQUAL "SHARED") # its objects hide nothing
  file(STRINGS ${PROJECT_SOURCE_DIR}/rfexec/api/exported_symbols.txt symbols)
  list(JOIN symbols "; " symbols)
  set(rfx_exports ${CMAKE_CURRENT_BINARY_DIR}/generated/exports.map)
  file(WRITE ${rfx_exports} "{ global: ${symbols}; local: *; };\n")
  target_link_options(rfx_library PRIVATE -Wl,--version-script=${rfx_exports})
endif()
rfx_add_library(rfx_archive STATIC rfexec_static)
# The archive exports what the public header declares and nothing else, as the shared library does: a
# program with an ONNX reader of its own links with it. So its objects become one, in which all other
# names are local.
set(rfx_static_nanopb)
set(rfx_nanopb_name protobuf-nanopb)
if(NOT RFX_SANITIZE)
  if(NANOPB_LIBRARY MATCHES "\\.a$") # becomes part of the archive
    set(rfx_static_nanopb ${NANOPB_LIBRARY})
    set(rfx_nanopb_name)
  endif()
  set(rfx_one_object ${CMAKE_CURRENT_BINARY_DIR}/librfexec.o)
  add_custom_command(TARGET rfx_archive POST_BUILD
    COMMAND ${CMAKE_LINKER} -r --gc-sections --gc-keep-exported -e rfx_version --whole-archive $<TARGET_FILE:rfx_archive> --no-whole-archive
            ${rfx_static_nanopb} -o ${rfx_one_object}
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${PROJECT_SOURCE_DIR}/rfexec/api/exported_symbols.txt
            ${rfx_one_object}
    COMMAND ${CMAKE_COMMAND} -E rm -f $<TARGET_FILE:rfx_archive>
    COMMAND ${CMAKE_AR} rcs $<TARGET_FILE:rfx_archive> ${rfx_one_object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${rfx_one_object}
    VERBATIM)
endif()
# What a program that takes in the archive links besides: by names that any linker finds, so that no
# package has to be looked for. rfexec.pc has the same list as Libs.private.
set(rfx_static_names ${rfx_nanopb_name} ${RFX_LIBRARY_NAMES} m ${CMAKE_DL_LIBS})
foreach(name IN LISTS rfx_static_names)
  target_link_libraries(rfx_archive INTERFACE $<INSTALL_INTERFACE:${name}>)
endforeach()
list(TRANSFORM rfx_static_names PREPEND -l OUTPUT_VARIABLE rfx_static_flags)
list(JOIN rfx_static_flags " " rfx_static_flags)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/rfexec/include/rfexec/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rfexec COMPONENT dev FILES_MATCHING PATTERN "*.h")

# Both files find their prefix from their own place: the installed tree can be moved.
file(RELATIVE_PATH rfx_pc_to_prefix /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(${CMAKE_CURRENT_LIST_DIR}/rfexec.pc.in ${CMAKE_CURRENT_BINARY_DIR}/rfexec.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rfexec.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
set(rfx_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rfexec)
install(EXPORT rfexec_targets NAMESPACE rfexec:: FILE rfexec-config.cmake
        DESTINATION ${rfx_package_dir} COMPONENT dev)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/rfexec-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rfexec-config-version.cmake
        DESTINATION ${rfx_package_dir} COMPONENT dev)
