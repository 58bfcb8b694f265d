# GoogleTest with GoogleMock, without a main: the installed static libraries, or the sources that
# Debian and Ubuntu install beside the headers, or a download.
find_package(Threads REQUIRED)
hearth_find_header(HEARTH_GTEST_INCLUDE gtest/gtest.h)
hearth_find_header(HEARTH_GMOCK_INCLUDE gmock/gmock.h)
hearth_find_library(HEARTH_GTEST_LIBRARY gtest INSTALLED)
hearth_find_library(HEARTH_GMOCK_LIBRARY gmock INSTALLED)
if(HEARTH_GTEST_INCLUDE MATCHES "^/usr/" AND HEARTH_GMOCK_INCLUDE MATCHES "^/usr/"
    AND HEARTH_GTEST_LIBRARY AND HEARTH_GMOCK_LIBRARY)
  hearth_define(gtest INCLUDE "${HEARTH_GTEST_INCLUDE}" "${HEARTH_GMOCK_INCLUDE}"
    LIBRARIES "${HEARTH_GMOCK_LIBRARY}" "${HEARTH_GTEST_LIBRARY}" Threads::Threads)
  return()
endif()

hearth_forget_if_gone(HEARTH_GTEST_SOURCE)
# Sources from the same installation as the headers; others may be of another version.
set(places)
foreach(include IN ITEMS "${HEARTH_GTEST_INCLUDE}" "${HEARTH_GMOCK_INCLUDE}")
  if(include)
    get_filename_component(prefix "${include}" DIRECTORY)
    list(APPEND places "${prefix}/src")
  endif()
endforeach()
if(NOT places)
  set(places /usr/src)
endif()
find_path(HEARTH_GTEST_SOURCE NAMES googlemock/src/gmock-all.cc PATHS ${places}
  PATH_SUFFIXES googletest NO_DEFAULT_PATH)
mark_as_advanced(HEARTH_GTEST_SOURCE)
set(source "${HEARTH_GTEST_SOURCE}")
if(NOT source)
  hearth_download(gtest https://github.com/google/googletest.git v1.14.0
    "libgtest-dev and libgmock-dev")
  set(source "${gtest_SOURCE}")
endif()

# Upstream has the headers next to the sources, Debian in the prefix's include folder. Uses
# whichever exists.
set(public)
foreach(part IN ITEMS googletest googlemock)
  if(EXISTS "${source}/${part}/include")
    list(APPEND public "${source}/${part}/include")
  endif()
endforeach()
if(NOT public)
  set(public "${HEARTH_GTEST_INCLUDE}" "${HEARTH_GMOCK_INCLUDE}")
endif()
add_library(hearth_gtest_objects STATIC EXCLUDE_FROM_ALL
  "${source}/googletest/src/gtest-all.cc" "${source}/googlemock/src/gmock-all.cc")
target_include_directories(hearth_gtest_objects SYSTEM PUBLIC ${public}
  PRIVATE "${source}/googletest" "${source}/googlemock")
target_link_libraries(hearth_gtest_objects PUBLIC Threads::Threads)
hearth_define(gtest LIBRARIES hearth_gtest_objects)
