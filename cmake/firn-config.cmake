include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(OpenSSL 3 COMPONENTS Crypto)
include(${CMAKE_CURRENT_LIST_DIR}/firn-targets.cmake)
