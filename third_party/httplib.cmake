# cpp-httplib. Upstream is one header; Debian and Ubuntu split it into a header and a shared library
# whose optional parts (TLS, compression) change the classes in that header. Which ones were built
# in stands in the pkg-config file beside the library.
find_package(Threads REQUIRED)
hearth_find_header(HEARTH_HTTPLIB_INCLUDE httplib.h)
hearth_find_library(HEARTH_HTTPLIB_LIBRARY cpp-httplib)
set(whole FALSE)
if(HEARTH_HTTPLIB_INCLUDE)
  file(STRINGS "${HEARTH_HTTPLIB_INCLUDE}/httplib.h" bodies REGEX "^inline .*Server::listen\\("
    LIMIT_COUNT 1)
  if(bodies)
    set(whole TRUE)
  endif()
endif()

if(whole)
  hearth_define(httplib INCLUDE "${HEARTH_HTTPLIB_INCLUDE}" LIBRARIES Threads::Threads)
elseif(HEARTH_HTTPLIB_INCLUDE AND HEARTH_HTTPLIB_LIBRARY)
  get_filename_component(folder "${HEARTH_HTTPLIB_LIBRARY}" DIRECTORY)
  set(defines)
  if(EXISTS "${folder}/pkgconfig/cpp-httplib.pc")
    file(STRINGS "${folder}/pkgconfig/cpp-httplib.pc" flags REGEX "^Cflags:")
    string(REGEX MATCHALL "CPPHTTPLIB_[A-Z_]+" defines "${flags}")
  endif()
  hearth_define(httplib INCLUDE "${HEARTH_HTTPLIB_INCLUDE}" DEFINES ${defines}
    LIBRARIES "${HEARTH_HTTPLIB_LIBRARY}" Threads::Threads)
else()
  hearth_download(httplib https://github.com/yhirose/cpp-httplib.git v0.14.3 libcpp-httplib-dev)
  hearth_define(httplib INCLUDE "${httplib_SOURCE}" LIBRARIES Threads::Threads)
endif()
