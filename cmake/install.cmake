# cmake --install: headers, static library, find_package(Reprise) and reprise.pc.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Reprise)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(TARGETS reprise EXPORT RepriseTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/reprise DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT RepriseTargets NAMESPACE Reprise:: DESTINATION ${config_dir})

configure_package_config_file(cmake/RepriseConfig.cmake.in RepriseConfig.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(RepriseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/RepriseConfig.cmake
  ${PROJECT_BINARY_DIR}/RepriseConfigVersion.cmake
  cmake/dependencies.cmake
  DESTINATION ${config_dir})

# The prefix is known only when installing, so reprise.pc finds it from its own place.
file(RELATIVE_PATH pc_to_prefix /prefix/${pkgconfig_dir} /prefix)
configure_file(cmake/reprise.pc.in reprise.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/reprise.pc DESTINATION ${pkgconfig_dir})
