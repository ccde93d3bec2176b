# Installs the library of `build` below `work` and builds main.cpp against it twice, through find_package and
# through pkg-config. Both programs must print the gradient, cos(1).
#   cmake -D build=... -D work=... -D compiler=... -D flags=... -P run.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(run_and_expect_gradient program)
  execute_process(COMMAND ${program} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  message("${program}: ${output}")
  if(NOT output MATCHES "0\\.5403")
    message(FATAL_ERROR "expected the gradient 0.5403 three times")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
set(prefix ${work}/prefix)
run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})

list(JOIN flags " " flag_text)
run(${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build
  -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_CXX_FLAGS=${flag_text}
  -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/build)
run_and_expect_gradient(${work}/build/consumer)

find_program(pkg_config pkg-config)
if(pkg_config)
  file(GLOB_RECURSE pc ${prefix}/reprise.pc)
  execute_process(COMMAND ${pkg_config} --cflags --libs ${pc}
    OUTPUT_VARIABLE options OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(options UNIX_COMMAND "${options}")
  run(${compiler} -std=c++20 ${flags} ${CMAKE_CURRENT_LIST_DIR}/main.cpp ${options}
    -o ${work}/consumer_pkg_config)
  run_and_expect_gradient(${work}/consumer_pkg_config)
endif()
