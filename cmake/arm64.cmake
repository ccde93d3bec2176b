# Toolchain file: for arm64 on another Debian machine, with g++-aarch64-linux-gnu and qemu-user. CMAKE_SYSROOT is a
# folder with the arm64 packages of packages.txt [build]; tools/check_machines makes one.
#   cmake --preset release -B build/arm64 --toolchain cmake/arm64.cmake -D CMAKE_SYSROOT=<folder>
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++ CACHE FILEPATH "" FORCE)  # whatever the preset says
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
