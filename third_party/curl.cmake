# libcurl: HTTP and TLS for hearth load and hearth dash --connect. Optional: without it, both
# commands only say what to install. Only the shared library is used: the static one needs libraries
# that its package does not name. If the headers come from an unpacked package, the system may have
# the library as libcurl.so.4 only.
hearth_find_header(HEARTH_CURL_INCLUDE curl/curl.h
  PATH_SUFFIXES "${CMAKE_LIBRARY_ARCHITECTURE}" "${CMAKE_SYSTEM_PROCESSOR}-linux-gnu")
hearth_find_library(HEARTH_CURL_LIBRARY libcurl.so)
hearth_find_library(HEARTH_CURL_LIBRARY libcurl.so.4)
if(HEARTH_CURL_INCLUDE AND HEARTH_CURL_LIBRARY)
  hearth_define(curl INCLUDE "${HEARTH_CURL_INCLUDE}" LIBRARIES "${HEARTH_CURL_LIBRARY}"
    DEFINES HEARTH_HAS_CURL=1)
else()
  message(STATUS "third_party: libcurl is not installed (package libcurl4-openssl-dev); hearth load "
    "and hearth dash --connect are left out")
  hearth_define(curl)
endif()
