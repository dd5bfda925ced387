# Debian packages: 'cpack' in the build folder makes rfexec (the program), librfexec0.2 (the library)
# and librfexec-dev (header, archive, pkg-config and CMake files), and where MPI was found rfexec-mpi. tests/acceptance/packages.sh
# installs and takes them away again in a fresh system.
set(rfx_so_version ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rfexec)
set(CPACK_PACKAGE_VENDOR rfexec)
# Debian's control file needs an address. The tree has none to give: reports go to the repository
# (SECURITY.md), and who hands packages on names himself by -D CPACK_PACKAGE_CONTACT="...". Names in
# "invalid" never exist (RFC 2606), so no mail goes to somebody else.
if(NOT CPACK_PACKAGE_CONTACT)
  set(CPACK_PACKAGE_CONTACT "rfexec developers <no-address@rfexec.invalid>")
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
# A package per group; what is in component "plain" is for other systems.
set(rfx_mpi_part)
if(TARGET rfexec-mpi)
  set(rfx_mpi_part mpi)
endif()
set(CPACK_COMPONENTS_ALL program debian library dev ${rfx_mpi_part})
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
find_program(RFX_SHLIBDEPS dpkg-shlibdeps)
if(RFX_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# What is loaded when it is needed is not among the libraries that dpkg-shlibdeps finds.
set(rfx_loaded "libopenblas0-openmp, libtiff6 (>= 4.5), libopenjp2-7, libwebp7")
set(CPACK_COMPONENT_GROUP_PROGRAM_DESCRIPTION
    "Runs convolutional networks on images of any size inside a memory budget, with exactly the\
 bits of the whole-image run.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME rfexec)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "${rfx_loaded}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS gnuplot-nox)

set(CPACK_COMPONENT_GROUP_LIBRARY_DESCRIPTION
    "Shared library: runs convolutional networks on images of any size inside a memory budget.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME librfexec${rfx_so_version})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${rfx_loaded}")

set(CPACK_COMPONENT_GROUP_DEV_DESCRIPTION
    "Header, static library, pkg-config and CMake files for programs that use librfexec.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME librfexec-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "librfexec${rfx_so_version} (= ${PROJECT_VERSION}), libpng-dev, zlib1g-dev, libjpeg-dev, \
libjansson-dev")

set(CPACK_COMPONENT_GROUP_MPI_DESCRIPTION
    "Runs a convolutional network on one image by several processes, with MPI, and gives the bits of\
 one.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME rfexec-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${rfx_loaded}")
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS mpi-default-bin)

foreach(part program library dev ${rfx_mpi_part})
  string(TOUPPER ${part} PART)
  install(FILES ${PROJECT_SOURCE_DIR}/NOTICE
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${PART}_PACKAGE_NAME}
          RENAME copyright COMPONENT ${part})
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/rfexec COMPONENT program)
include(CPack)
foreach(part program debian library dev ${rfx_mpi_part})
  string(REPLACE debian program group ${part})
  cpack_add_component(${part} GROUP ${group})
endforeach()
