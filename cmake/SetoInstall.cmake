# cmake --install: headers, libseto.so, pkg-config file, CMake package, the seto command, debug symbols.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(TARGET seto)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/seto" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h"
          PATTERN "*.hpp")
  install(TARGETS seto EXPORT SetoTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  seto_split_debug(seto "${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:seto>" lib/debug)
  if(TARGET seto_command)
    install(TARGETS seto_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    seto_split_debug(seto_command "${CMAKE_INSTALL_BINDIR}/$<TARGET_FILE_NAME:seto_command>" lib/debug)
    set_target_properties(seto_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  endif()

  # The path from the pkg-config file to the prefix, so that an installed tree can be moved. Debian's libdir has two levels.
  file(RELATIVE_PATH SETO_PC_TO_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" SETO_PC_TO_PREFIX "${SETO_PC_TO_PREFIX}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/seto.pc.in" "${PROJECT_BINARY_DIR}/seto.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/seto.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

  set(package "${CMAKE_INSTALL_LIBDIR}/cmake/Seto")
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/SetoConfig.cmake.in" "${PROJECT_BINARY_DIR}/SetoConfig.cmake"
                                INSTALL_DESTINATION "${package}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/SetoConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/SetoConfig.cmake" "${PROJECT_BINARY_DIR}/SetoConfigVersion.cmake" DESTINATION "${package}")
  install(EXPORT SetoTargets NAMESPACE Seto:: DESTINATION "${package}")
endif()
