# Finds the dependencies. Nothing is searched for until a target uses it:
#
#   hearth_use(fmt gtest)                                    # from any CMakeLists.txt
#   target_link_libraries(x PRIVATE hearth::fmt hearth::gtest)
#
# hearth_use(NAME) reads NAME.cmake of this folder once, which defines a target hearth::NAME. Each of
# those files prefers the system's package, and downloads a pinned release if there is none.
include_guard(GLOBAL)
include(FetchContent)

set(HEARTH_THIRD_PARTY_DIR "${CMAKE_CURRENT_LIST_DIR}")
option(HEARTH_DOWNLOAD "Download a pinned release of a dependency that is not installed" ON)

# The private prefix that tools/setup fills: the same three steps as tools/lib/common.sh.
if(DEFINED ENV{HEARTH_DEPS})
  set(HEARTH_DEPS_DIR "$ENV{HEARTH_DEPS}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(HEARTH_DEPS_DIR "$ENV{XDG_CACHE_HOME}/hearth/deps")
else()
  set(HEARTH_DEPS_DIR "$ENV{HOME}/.cache/hearth/deps")
endif()
if(EXISTS "${HEARTH_DEPS_DIR}/changed")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${HEARTH_DEPS_DIR}/changed")
endif()

function(hearth_use)
  foreach(dependency IN LISTS ARGN)
    if(NOT TARGET hearth::${dependency})
      include("${HEARTH_THIRD_PARTY_DIR}/${dependency}.cmake")
    endif()
  endforeach()
endfunction()

# Forgets a cached path that no longer exists, so that a removed or moved package is searched again.
function(hearth_forget_if_gone variable)
  if(${variable} AND NOT EXISTS "${${variable}}")
    unset(${variable} CACHE)
  endif()
endfunction()

# hearth_find_header(VARIABLE HEADER [FOLDER...]): the folder that holds HEADER. CMAKE_PREFIX_PATH is
# searched first, then the private prefix, CPATH, the given folders and the system. Package config
# files are not used: they name absolute paths, which are wrong in an unpacked package tree.
function(hearth_find_header variable header)
  hearth_forget_if_gone(${variable})
  find_path(${variable} NAMES "${header}"
    HINTS "${HEARTH_DEPS_DIR}/hdr/usr/include" ENV CPATH
    ${ARGN})
  mark_as_advanced(${variable})
endfunction()

# hearth_find_library(VARIABLE NAME [INSTALLED | FOLDER...]): the path of the library; the folders are
# searched first. With INSTALLED only one under the system's own prefixes counts: an unpacked package tree may
# come from another release, whose compiled C++ need not link here, and the caller has an alternative.
function(hearth_find_library variable name)
  hearth_forget_if_gone(${variable})
  set(search HINTS ${ARGN})
  if("INSTALLED" IN_LIST ARGN)
    set(search NO_PACKAGE_ROOT_PATH NO_CMAKE_PATH NO_CMAKE_ENVIRONMENT_PATH
      NO_SYSTEM_ENVIRONMENT_PATH)
  endif()
  find_library(${variable} NAMES "${name}" ${search})
  mark_as_advanced(${variable})
endfunction()

# hearth_define(NAME INCLUDE dir... LIBRARIES lib... DEFINES name...): the target hearth::NAME.
# Its headers are system headers, so that our warnings stay ours.
function(hearth_define name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "INCLUDE;LIBRARIES;DEFINES")
  add_library(hearth_${name} INTERFACE)
  add_library(hearth::${name} ALIAS hearth_${name})
  target_include_directories(hearth_${name} SYSTEM INTERFACE ${arg_INCLUDE})
  target_link_libraries(hearth_${name} INTERFACE ${arg_LIBRARIES})
  target_compile_definitions(hearth_${name} INTERFACE ${arg_DEFINES})
endfunction()

# hearth_download(NAME REPOSITORY TAG PACKAGE [BUILD]): fetches a pinned release and sets
# NAME_SOURCE to its folder. With BUILD its own CMakeLists.txt is used, otherwise only the files
# are fetched. TAG may be a commit's hash. PACKAGE is the package to install instead.
function(hearth_download name repository tag package)
  if(NOT HEARTH_DOWNLOAD)
    message(FATAL_ERROR "${name} is not installed and HEARTH_DOWNLOAD is off. "
      "Install ${package}, or run tools/setup.")
  endif()
  message(STATUS "third_party: ${name} is not installed (package ${package}); "
    "downloading ${repository} ${tag}")
  set(subdirectory)
  if(NOT "BUILD" IN_LIST ARGN)
    # A folder that does not exist keeps FetchContent from building anything.
    set(subdirectory SOURCE_SUBDIR files-only)
  endif()
  # A shallow clone ends at a branch or a tag and has no other commits.
  set(shallow ON)
  if(tag MATCHES "^[0-9a-f]+$")
    set(shallow OFF)
  endif()
  FetchContent_Declare(hearth_${name}_source SYSTEM
    GIT_REPOSITORY "${repository}" GIT_TAG "${tag}" GIT_SHALLOW ${shallow} ${subdirectory})
  FetchContent_MakeAvailable(hearth_${name}_source)
  set(${name}_SOURCE "${hearth_${name}_source_SOURCE_DIR}" PARENT_SCOPE)
endfunction()
