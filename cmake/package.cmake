# cpack -G DEB, of a build with BUILD_SHARED_LIBS: the Debian packages `libreprise0`, the library, `libreprise-dev`, what
# programs are built with, and `reprise`, the tool. tools/check_deb builds them, installs them into a clean system and
# uses them.

set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_CONTACT "The Reprise authors <reprise@users.noreply.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime library tool)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")  # of the machine that it is for, not of the one that builds it
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
set(about "Automatic differentiation in which you decide what is kept between the forward and the backward pass
and what is computed again, with the names of jax.checkpoint.")

set(runtime_package libreprise${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "The shared library.\n${about}")

# Headers need the standard library they were tried with, or a newer one.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libreprise-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "${runtime_package} (= ${PROJECT_VERSION}), libstdc++-12-dev | libstdc++-dev")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "reprise, cmake | pkg-config")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "Headers, and files for CMake and pkg-config.\n${about}")

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME reprise)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_DESCRIPTION "The command-line tool prints programs, lists what checkpoint policies save between
the forward and the backward pass, and plans the memory of a program and its gradient.")

include(CPack)
