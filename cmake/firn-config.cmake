# libfirn alone needs no OpenSSL; firn::firn-seal-* do. COMPONENTS seal makes it a must.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
if("seal" IN_LIST firn_FIND_COMPONENTS AND firn_FIND_REQUIRED_seal)
  find_dependency(OpenSSL 3 COMPONENTS Crypto)
else()
  find_package(OpenSSL 3 QUIET COMPONENTS Crypto)
endif()
set(firn_seal_FOUND ${OpenSSL_FOUND})
include(${CMAKE_CURRENT_LIST_DIR}/firn-targets.cmake)
if(NOT TARGET firn::firn) # the usual choice: the shared library
  add_library(firn::firn ALIAS firn::firn-shared)
endif()
