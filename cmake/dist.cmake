# Reprise::dist: ranks joined by MPI, a library of its own beside the core, which knows nothing of MPI. Any MPI does;
# Debian's are libopenmpi-dev and libmpich-dev. Without one the core is complete, for one rank.

set(MPI_CXX_SKIP_MPICXX TRUE)  # its old C++ interface is not used
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "MPI not found, leaving out Reprise::dist (Debian package libopenmpi-dev)")
  return()
endif()

file(GLOB dist_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/dist/*.cpp)
add_library(reprise_dist STATIC ${dist_sources})
add_library(Reprise::dist ALIAS reprise_dist)
set_target_properties(reprise_dist PROPERTIES EXPORT_NAME dist POSITION_INDEPENDENT_CODE ON)
target_include_directories(reprise_dist PRIVATE ${PROJECT_SOURCE_DIR}/src)
# Programs link the library themselves: tests the inner one, others Reprise::reprise.
target_include_directories(reprise_dist PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(reprise_dist PUBLIC cxx_std_20)
target_link_libraries(reprise_dist PUBLIC MPI::MPI_CXX)
reprise_set_flags(reprise_dist)

# How tests start four ranks. Open MPI counts cores, and does not like root.
set(reprise_mpirun ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 4)
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE version ERROR_QUIET)
if(version MATCHES "Open MPI|OpenRTE")
  list(APPEND reprise_mpirun --oversubscribe --allow-run-as-root)
endif()

# MPI is not built with sanitizers, and keeps memory and threads until its end: what it does is not looked at.
function(reprise_look_past_mpi)
  if(REPRISE_SANITIZE MATCHES "address")
    set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=malloc_context_size=5:detect_leaks=0")
  elseif(REPRISE_SANITIZE MATCHES "thread")
    set_tests_properties(${ARGN} PROPERTIES
      ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1")
  endif()
endfunction()
