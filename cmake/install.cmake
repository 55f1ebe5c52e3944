# Install: headers, libraries, pkg-config files and the CMake package.
include(CMakePackageConfigHelpers)
set(parts firn firn-seal firn-client)
set(libraries firn_static firn_shared firn_seal_static firn_seal_shared firn_client_shared)
if(TARGET firn_node_shared)
  list(APPEND parts firn-node)
  list(APPEND libraries firn_node_shared)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/firn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS ${libraries} EXPORT firn)
install(EXPORT firn NAMESPACE firn:: FILE firn-targets.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/firn)
configure_file(${CMAKE_SOURCE_DIR}/cmake/firn-config.cmake ${CMAKE_BINARY_DIR}/firn-config.cmake COPYONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/firn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/firn-config.cmake ${CMAKE_BINARY_DIR}/firn-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/firn)

# The .pc files find the rest from where they lie, so that --prefix, DESTDIR and a later move all work.
foreach(dir LIBDIR INCLUDEDIR)
  cmake_path(APPEND FIRN_PC_${dir} "\${prefix}" "${CMAKE_INSTALL_${dir}}") # an absolute one replaces
endforeach()
set(FIRN_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  cmake_path(APPEND FIRN_PC_PREFIX_ "\${pcfiledir}" ${up})
  string(REGEX REPLACE "/$" "" FIRN_PC_PREFIX ${FIRN_PC_PREFIX_})
endif()
foreach(part ${parts})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/lib${part}.pc.in ${CMAKE_BINARY_DIR}/lib${part}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/lib${part}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
