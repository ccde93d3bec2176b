# LLVM, oneDNN, libgomp and zlib as imported targets, found by header and library: the packages' own CMake
# files ask for compression, OpenCL and exact minor versions that nothing here uses.
#
# The build needs headers and libraries. find_package(Reprise) only links, so it looks for libraries, and for
# LLVM of the version that the library was compiled with: it sets reprise_llvm_versions to that one.
# What is missing is told in reprise_missing, one sentence with the Debian package each.

set(reprise_missing "")

# _reprise_dependency(<name> "<what>" <package> HEADER <header> LIBRARY <names>... [HINTS <prefixes>...])
function(_reprise_dependency name what package)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "HEADER" "LIBRARY;HINTS")
  string(TOUPPER ${name} upper)
  find_library(REPRISE_${upper}_LIBRARY NAMES ${arg_LIBRARY} HINTS ${arg_HINTS} PATH_SUFFIXES lib)
  set(found ${REPRISE_${upper}_LIBRARY})
  set(include "")
  if(arg_HEADER AND NOT reprise_only_links)
    find_path(REPRISE_${upper}_INCLUDE ${arg_HEADER} HINTS ${arg_HINTS} PATH_SUFFIXES include)
    set(include ${REPRISE_${upper}_INCLUDE})
    if(NOT include)
      set(found "")
    endif()
  endif()
  if(NOT found)
    list(APPEND reprise_missing "${what} is not found (Debian package ${package})")
    set(reprise_missing "${reprise_missing}" PARENT_SCOPE)
  elseif(NOT TARGET Reprise::${name})
    # Global: a project that contains ours links them with the static library.
    add_library(Reprise::${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(Reprise::${name} PROPERTIES
      IMPORTED_LOCATION ${found} INTERFACE_INCLUDE_DIRECTORIES "${include}")
  endif()
endfunction()

if(NOT reprise_llvm_versions)
  set(reprise_llvm_versions 19 20 21)
endif()
set(_llvm_prefixes "")
set(_llvm_names "")
foreach(_version IN LISTS reprise_llvm_versions)
  list(APPEND _llvm_prefixes /usr/lib/llvm-${_version})
  list(APPEND _llvm_names LLVM-${_version} libLLVM.so.${_version}.1)  # of the -dev package; of the library alone
endforeach()
list(JOIN reprise_llvm_versions " or " _llvm_text)
list(GET reprise_llvm_versions 0 _llvm_first)
if(reprise_only_links)
  set(_llvm_package libllvm${_llvm_first})
else()
  set(_llvm_package llvm-${_llvm_first}-dev)
endif()

_reprise_dependency(llvm "LLVM ${_llvm_text}" ${_llvm_package}
  HEADER llvm/ExecutionEngine/Orc/LLJIT.h LIBRARY ${_llvm_names} HINTS ${_llvm_prefixes})
_reprise_dependency(dnnl "oneDNN" libdnnl-dev HEADER dnnl.hpp LIBRARY dnnl)
_reprise_dependency(gomp "libgomp" libgomp1 LIBRARY libgomp.so.1 gomp)
_reprise_dependency(zlib "zlib" zlib1g-dev HEADER zlib.h LIBRARY z)
