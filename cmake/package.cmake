# cpack -G DEB: `reprise`, the tool, and `libreprise-dev`, the library, as Debian packages.
# tools/check_deb installs both into a clean system and uses them.

set(CPACK_PACKAGE_NAME reprise)
set(CPACK_PACKAGE_CONTACT "The Reprise authors <reprise@users.noreply.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library tool)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME reprise)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_DESCRIPTION "The command-line tool prints programs, lists what checkpoint policies save between
the forward and the backward pass, and plans the memory of a program and its gradient.")

# A static library has no dependencies that dpkg-shlibdeps could read: these are what a program links.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libreprise-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
  "libllvm${REPRISE_LLVM_VERSION}, libdnnl-dev, libgomp1, libstdc++-12-dev, zlib1g-dev")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "reprise, cmake | pkg-config")
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "Headers and static library: automatic differentiation in which you decide what is kept
between the forward and the backward pass and what is computed again, with the names
of jax.checkpoint.")

include(CPack)
