# A compiler that is too old is told here, by name, and not by the errors of the first file that it cannot read.

set(_oldest_GNU 12)
set(_oldest_Clang 14)
if(CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS _oldest_${CMAKE_CXX_COMPILER_ID})
    message(FATAL_ERROR "Reprise needs g++ ${_oldest_GNU} or clang++ ${_oldest_Clang}, or newer: "
      "${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  endif()
else()
  message(WARNING "Reprise is tried with g++ and clang++ only: ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_ID}")
endif()
