# LLVM, oneDNN, libgomp and zlib as imported targets, found by header and library: the packages' own CMake
# files ask for compression, OpenCL and exact minor versions that nothing here uses.

foreach(_version 19 20 21)
  list(APPEND _llvm_prefixes /usr/lib/llvm-${_version})
  list(APPEND _llvm_names LLVM-${_version})
endforeach()
find_path(REPRISE_LLVM_INCLUDE llvm/ExecutionEngine/Orc/LLJIT.h
  HINTS ${_llvm_prefixes} PATH_SUFFIXES include REQUIRED)
find_library(REPRISE_LLVM_LIBRARY NAMES ${_llvm_names}
  HINTS ${_llvm_prefixes} PATH_SUFFIXES lib REQUIRED)
find_path(REPRISE_DNNL_INCLUDE dnnl.hpp REQUIRED)
find_library(REPRISE_DNNL_LIBRARY dnnl REQUIRED)
find_library(REPRISE_GOMP_LIBRARY NAMES gomp libgomp.so.1 REQUIRED
  HINTS /usr/lib/gcc/x86_64-linux-gnu/12 /usr/lib/gcc/aarch64-linux-gnu/12)
find_path(REPRISE_ZLIB_INCLUDE zlib.h REQUIRED)
find_library(REPRISE_ZLIB_LIBRARY z REQUIRED)

function(_reprise_dependency name library include)
  if(NOT TARGET Reprise::${name})
    add_library(Reprise::${name} UNKNOWN IMPORTED)
    set_target_properties(Reprise::${name} PROPERTIES
      IMPORTED_LOCATION ${library} INTERFACE_INCLUDE_DIRECTORIES "${include}")
  endif()
endfunction()
_reprise_dependency(llvm ${REPRISE_LLVM_LIBRARY} "${REPRISE_LLVM_INCLUDE}")
_reprise_dependency(dnnl ${REPRISE_DNNL_LIBRARY} "${REPRISE_DNNL_INCLUDE}")
_reprise_dependency(gomp ${REPRISE_GOMP_LIBRARY} "")
_reprise_dependency(zlib ${REPRISE_ZLIB_LIBRARY} "${REPRISE_ZLIB_INCLUDE}")
