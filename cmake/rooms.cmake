# A room is a folder of src/: every .c file in it belongs to its target, so adding a file needs no edit.

# firn_room(NAME [SUBFOLDER…]): the static library firn_NAME of this folder and the named ones below it.
function(firn_room name)
  file(GLOB sources CONFIGURE_DEPENDS *.c)
  foreach(sub ${ARGN})
    file(GLOB more CONFIGURE_DEPENDS ${sub}/*.c)
    list(APPEND sources ${more})
  endforeach()
  add_library(firn_${name} STATIC ${sources})
  target_link_libraries(firn_${name} PRIVATE firn_flags PUBLIC firn_static)
endfunction()

# firn_objects(NAME): the objects of this folder that installed libraries are made of, firn_NAME_objects.
function(firn_objects name)
  file(GLOB sources CONFIGURE_DEPENDS *.c)
  add_library(firn_${name}_objects OBJECT ${sources})
  target_compile_definitions(firn_${name}_objects PRIVATE FIRN_BUILDING)
  target_link_libraries(firn_${name}_objects PRIVATE firn_flags)
endfunction()

# firn_library(NAME): the installed libraries libfirn-NAME of this folder, firn_NAME_static and
# firn_NAME_shared, of the same objects. The shared one shows what cmake/libfirn-NAME.map lists, nothing else.
function(firn_library name)
  firn_objects(${name})
  set(map ${CMAKE_SOURCE_DIR}/cmake/libfirn-${name}.map)
  add_library(firn_${name}_static STATIC $<TARGET_OBJECTS:firn_${name}_objects>)
  add_library(firn_${name}_shared SHARED $<TARGET_OBJECTS:firn_${name}_objects>)
  foreach(kind static shared)
    set(t firn_${name}_${kind})
    target_link_libraries(${t} PRIVATE $<BUILD_INTERFACE:firn_flags>)
    target_include_directories(${t} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${t} PROPERTIES OUTPUT_NAME firn-${name} EXPORT_NAME firn-${name}-${kind})
  endforeach()
  target_link_options(firn_${name}_shared PRIVATE -Wl,--version-script=${map} ${FIRN_SHARED_LINK})
  set_target_properties(firn_${name}_shared PROPERTIES
    LINK_DEPENDS ${map} VERSION ${PROJECT_VERSION} SOVERSION ${FIRN_SOVERSION})
endfunction()

# firn_embed(TARGET FILE NAME HEADER [GZIP]): puts a file of the tree, or of the build, into a program as the array NAME.
function(firn_embed target file name header)
  set(to ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  get_filename_component(from ${file} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
  add_custom_command(OUTPUT ${to}
    COMMAND ${CMAKE_COMMAND} -DFROM=${from} -DTO=${to} -DNAME=${name}
            -DHEADER=${header} -DGZIP=$<BOOL:${ARGN}> -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${from} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${to})
endfunction()
