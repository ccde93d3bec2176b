# Versions of the libraries that dependencies.cmake has found, read from their headers; what is too old or too new
# joins reprise_missing. Sets REPRISE_LLVM_VERSION.

# _reprise_version(<result> <header> <macros>...): the numbers of these macros, joined by dots.
function(_reprise_version result header)
  set(numbers "")
  foreach(macro IN LISTS ARGN)
    file(STRINGS ${header} line REGEX "define ${macro} +[0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND numbers "${number}")
  endforeach()
  list(JOIN numbers . version)
  set(${result} ${version} PARENT_SCOPE)
endfunction()

if(TARGET Reprise::llvm)
  _reprise_version(REPRISE_LLVM_VERSION ${REPRISE_LLVM_INCLUDE}/llvm/Config/llvm-config.h LLVM_VERSION_MAJOR)
  if(NOT REPRISE_LLVM_VERSION IN_LIST reprise_llvm_versions)
    list(APPEND reprise_missing
      "LLVM ${_llvm_text} is needed, ${REPRISE_LLVM_INCLUDE} has ${REPRISE_LLVM_VERSION} (Debian package ${_llvm_package})")
  endif()
endif()
if(TARGET Reprise::dnnl)
  _reprise_version(REPRISE_DNNL_VERSION ${REPRISE_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h
    DNNL_VERSION_MAJOR DNNL_VERSION_MINOR)
  if(REPRISE_DNNL_VERSION VERSION_LESS 2.6)
    list(APPEND reprise_missing
      "oneDNN 2.6 or newer is needed, ${REPRISE_DNNL_INCLUDE} has ${REPRISE_DNNL_VERSION} (Debian package libdnnl-dev)")
  endif()
endif()
