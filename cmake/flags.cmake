# Flags of our own targets. Nothing here reaches those who use the library.

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(REPRISE_CCACHE ccache)
  if(REPRISE_CCACHE)
    # Paths relative to the sources: a second clone finds what the first one compiled.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${REPRISE_CCACHE})
  endif()
endif()

set(reprise_sanitize_flags "")
if(REPRISE_SANITIZE)
  set(reprise_sanitize_flags
    -fsanitize=${REPRISE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()

function(reprise_set_flags target)
  # No contraction: a * b + c must give the same bits with every compiler and in every loop.
  target_compile_options(${target} PRIVATE -ffp-contract=off ${reprise_sanitize_flags})
  target_link_options(${target} PRIVATE ${reprise_sanitize_flags})
  # Debug builds check every program after every transform.
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:REPRISE_CHECK=1>)
  if(NOT PROJECT_IS_TOP_LEVEL)  # warnings are for those who change the code, not for those who build it with theirs
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wswitch-enum)
  if(REPRISE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ counts a constructor parameter named like its member as shadowing: ask for locals only.
    target_compile_options(${target} PRIVATE -Wshadow=local)
    # g++ 12 sees overlapping copies inside std::string where there are none.
    target_compile_options(${target} PRIVATE -Wno-restrict)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      # Newer ones see std::optional destroyed uninitialised, vectors freed from their middle, and references to what a
      # call was given as references into what it made. Older ones, clang++ and the sanitizers look for the true ones.
      target_compile_options(${target} PRIVATE
        -Wno-maybe-uninitialized -Wno-free-nonheap-object -Wno-dangling-reference)
    endif()
    if(REPRISE_SANITIZE)
      # The sanitizers' extra branches make std::optional look uninitialised.
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
  # clang++ counts the names of a neighbour in the same unit too: ask where each file stands by itself.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT REPRISE_UNITS)
    target_compile_options(${target} PRIVATE -Wshadow)
  endif()
endfunction()
