# What the README asks a newcomer to type, in its order and nothing else, on a copy of the sources that was never
# built: ./run, then its line with `cmake --install`. `--target reprise` must make the library and only that.
#   cmake -D root=... -D work=... -P front_door.cmake

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${work}/clone COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${work})
file(GLOB sources ${root}/*)
list(FILTER sources EXCLUDE REGEX "/build$")
file(COPY ${sources} DESTINATION ${work}/clone)

file(READ ${root}/README.md readme)
if(NOT readme MATCHES "\n\\./run " OR NOT readme MATCHES "`(cmake --install [^`]*)<where>`")
  message(FATAL_ERROR "README.md no longer says how to run and to install")
endif()
set(install ${CMAKE_MATCH_1}${work}/prefix)
separate_arguments(install)

run(./run --help)
run(${install})
run(${work}/prefix/bin/reprise --version)
file(GLOB_RECURSE installed ${work}/prefix/*)
foreach(name RepriseConfig.cmake reprise.h reprise.pc)
  if(NOT "${installed}" MATCHES "/${name}(;|$)")
    message(FATAL_ERROR "${name} is not installed")
  endif()
endforeach()

# The library's target builds the library.
file(GLOB_RECURSE library ${work}/clone/build/release/libreprise.*)
file(REMOVE ${library} ${work}/clone/build/release/bin/reprise)
run(${CMAKE_COMMAND} --build build/release --target reprise)
file(GLOB library ${work}/clone/build/release/libreprise.*)
if(NOT library OR EXISTS ${work}/clone/build/release/bin/reprise)
  message(FATAL_ERROR "--target reprise does not build the library alone")
endif()
file(REMOVE_RECURSE ${work}/clone)
