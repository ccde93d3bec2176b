# Compilers and libraries that are too old are named when the project is configured, each with what would do. The
# versions are those of headers written here, and of a compiler whose version CMake is told.
#   cmake -D root=... -D work=... -D compiler=... -P too_old.cmake

file(REMOVE_RECURSE ${work})
file(WRITE ${work}/llvm/llvm/Config/llvm-config.h "#define LLVM_VERSION_MAJOR 18\n")
file(WRITE ${work}/dnnl/oneapi/dnnl/dnnl_version.h "#define DNNL_VERSION_MAJOR 2\n#define DNNL_VERSION_MINOR 5\n")

# expect_refusal(<name> <text> <options of cmake>...)
function(expect_refusal name text)
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${root} -B ${work}/${name} ${ARGN}
    -D CMAKE_CXX_COMPILER=${compiler} RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE error)
  string(REGEX REPLACE "[ \n]+" " " error "${error}")  # CMake breaks its lines
  if(result EQUAL 0 OR NOT error MATCHES "${text}")
    message(FATAL_ERROR "${name}: expected ${text}, got: ${error}")
  endif()
endfunction()

expect_refusal(old_llvm "LLVM 19 or 20 or 21 is needed, [^ ]+ has 18 \\(Debian package llvm-19-dev\\)"
  -D REPRISE_LLVM_INCLUDE=${work}/llvm)
expect_refusal(old_dnnl "oneDNN 2\\.6 or newer is needed, [^ ]+ has 2\\.5 \\(Debian package libdnnl-dev\\)"
  -D REPRISE_DNNL_INCLUDE=${work}/dnnl)
expect_refusal(old_compiler "needs g\\+\\+ 12 or clang\\+\\+ 14, or newer: [^ ]+ is GNU 11\\.4"
  -D CMAKE_CXX_COMPILER_FORCED=ON -D CMAKE_CXX_COMPILER_ID=GNU -D CMAKE_CXX_COMPILER_VERSION=11.4)
expect_refusal(missing "oneDNN is not found \\(Debian package libdnnl-dev\\)" -D CMAKE_IGNORE_PREFIX_PATH=/usr)
