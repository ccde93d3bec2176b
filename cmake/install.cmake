# cmake --install: component `library` is headers, what programs link, find_package(Reprise) and reprise.pc;
# component `runtime` is the shared library, if it is one; component `tool` is the command-line tool, its manual page
# and completions.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS reprise EXPORT RepriseTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT library
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
  FILES_MATCHING PATTERN "*.h")
install(EXPORT RepriseTargets NAMESPACE Reprise:: DESTINATION ${config_dir} COMPONENT library)

configure_package_config_file(cmake/RepriseConfig.cmake.in RepriseConfig.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/RepriseConfig.cmake
  ${PROJECT_BINARY_DIR}/RepriseConfigVersion.cmake
  cmake/dependencies.cmake
  DESTINATION ${config_dir} COMPONENT library)

# The prefix is known only when installing, so reprise.pc finds it from its own place.
file(RELATIVE_PATH pc_to_prefix /prefix/${pkgconfig_dir} /prefix)
set(pc_own "-L\${libdir} -lreprise")
set(pc_others "-l:libLLVM.so.${REPRISE_LLVM_VERSION}.1 -ldnnl -lgomp -lz -pthread")
if(BUILD_SHARED_LIBS)
  set(pc_libs "Libs: ${pc_own}")
else()  # all that a static library needs is linked with it, `--static` or not
  set(pc_libs "Libs: ${pc_own} ${pc_others}")
endif()
configure_file(cmake/reprise.pc.in reprise.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/reprise.pc DESTINATION ${pkgconfig_dir} COMPONENT library)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libreprise-dev RENAME copyright COMPONENT library)
if(BUILD_SHARED_LIBS)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libreprise${PROJECT_VERSION_MAJOR}
    RENAME copyright COMPONENT runtime)
endif()

if(REPRISE_BUILD_TOOL)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/reprise RENAME copyright COMPONENT tool)
  install(TARGETS reprise_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
  configure_file(tools/reprise/reprise.1.in reprise.1 @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/reprise.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)

  # The tool writes its completions itself, under the names by which each shell finds them.
  set(completions ${PROJECT_BINARY_DIR}/completions)
  file(MAKE_DIRECTORY ${completions})
  add_custom_command(TARGET reprise_cli POST_BUILD
    COMMAND reprise_cli completion bash > ${completions}/reprise
    COMMAND reprise_cli completion zsh > ${completions}/_reprise
    COMMAND reprise_cli completion fish > ${completions}/reprise.fish
    VERBATIM)
  install(FILES ${completions}/reprise
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tool)
  install(FILES ${completions}/_reprise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tool)
  install(FILES ${completions}/reprise.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)
endif()
