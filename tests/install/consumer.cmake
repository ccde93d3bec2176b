# Installs the library and the tool of `build` below `work`, and builds examples/consumer against them twice, through
# find_package and through pkg-config. Both programs must train.
#   cmake -D build=... -D work=... -D source=... -D compiler=... -D flags=... -P consumer.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(run_and_expect text)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  message("${ARGN}: ${output}")
  if(NOT output MATCHES "${text}")
    message(FATAL_ERROR "expected ${text}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
set(prefix ${work}/prefix)
run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})

run_and_expect("^reprise [0-9]+\\.[0-9]+\\.[0-9]+\n$" ${prefix}/bin/reprise --version)
foreach(file share/man/man1/reprise.1 share/bash-completion/completions/reprise
    share/zsh/site-functions/_reprise share/fish/vendor_completions.d/reprise.fish)
  file(SIZE ${prefix}/${file} size)
  if(size EQUAL 0)
    message(FATAL_ERROR "${file} is empty")
  endif()
endforeach()

# CMake. The project is used where a user would have it: away from our sources.
file(COPY ${source} DESTINATION ${work})
list(JOIN flags " " flag_text)
set(configure ${CMAKE_COMMAND} -G Ninja -S ${work}/consumer
  -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_CXX_FLAGS=${flag_text}
  -D CMAKE_PREFIX_PATH=${prefix})
run(${configure} -B ${work}/build)
run(${CMAKE_COMMAND} --build ${work}/build)
run_and_expect("after 500 steps\n$" ${work}/build/consumer)

# A library that is missing is named, with its package.
file(GLOB library_dirs /usr/lib/*-linux-gnu /lib/*-linux-gnu)
execute_process(COMMAND ${configure} -B ${work}/build_missing "-DCMAKE_IGNORE_PATH=${library_dirs}"
  RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
if(result EQUAL 0 OR NOT error MATCHES "oneDNN is not found.*\\(Debian package libdnnl-dev\\)")
  message(FATAL_ERROR "expected a message about oneDNN, got: ${error}")
endif()

# pkg-config.
find_program(pkg_config pkg-config)
find_program(make make)
if(pkg_config AND make)
  file(GLOB_RECURSE pc ${prefix}/reprise.pc)
  cmake_path(GET pc PARENT_PATH pc_dir)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_dir} CXX=${compiler} CXXFLAGS=${flag_text}
    ${make} -C ${work}/consumer)
  run_and_expect("after 500 steps\n$" ${work}/consumer/consumer)
else()
  message("make or pkg-config is not installed: the Makefile is not tried")
endif()
