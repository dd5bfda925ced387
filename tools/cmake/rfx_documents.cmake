# Man page and completions of shells: the program prints them from its own tables whenever it is
# built. Where built programs cannot be started there are none.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()
set(rfx_documents ${CMAKE_CURRENT_BINARY_DIR}/documents)
file(MAKE_DIRECTORY ${rfx_documents})
add_custom_command(TARGET rfexec POST_BUILD
  COMMAND rfexec reference man > rfexec.1
  COMMAND rfexec reference bash > rfexec.bash
  COMMAND rfexec reference zsh > _rfexec
  COMMAND rfexec reference fish > rfexec.fish
  WORKING_DIRECTORY ${rfx_documents} VERBATIM)
if(TARGET rfexec-mpi) # whose words follow mpirun's, where no completion would be asked
  add_custom_command(TARGET rfexec-mpi POST_BUILD
    COMMAND rfexec-mpi reference man > rfexec-mpi.1
    WORKING_DIRECTORY ${rfx_documents} VERBATIM)
  install(FILES ${rfx_documents}/rfexec-mpi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT mpi)
endif()
install(FILES ${rfx_documents}/rfexec.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${rfx_documents}/rfexec.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME rfexec
        COMPONENT program)
# Debian's zsh looks for what packages bring in another folder than everybody else's.
install(FILES ${rfx_documents}/_rfexec DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
        COMPONENT plain)
install(FILES ${rfx_documents}/_rfexec DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${rfx_documents}/rfexec.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
