# ThreadSanitizer does not see how clang's OpenMP runtime starts and joins threads: archer, which comes
# with the runtime, tells it.
get_filename_component(openmp_dir ${OpenMP_omp_LIBRARY} DIRECTORY)
find_library(RFX_ARCHER archer HINTS ${openmp_dir} REQUIRED)
set_property(TEST ${RFX_THREAD_TESTS} APPEND PROPERTY ENVIRONMENT "OMP_TOOL_LIBRARIES=${RFX_ARCHER}"
             "TSAN_OPTIONS=suppressions=${CMAKE_CURRENT_LIST_DIR}/thread_checks.supp")
# Few random networks are enough for that: RFX_CASES as in the variants of tests/CMakeLists.txt.
set_property(TEST test_session APPEND PROPERTY ENVIRONMENT RFX_CASES=100)
