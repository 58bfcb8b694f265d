# Compiler settings for all of our targets: warnings, sanitizers, ccache, mold.
# Usage: link `hearth_options` privately; third-party code is not built with it.

set(HEARTH_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined)")

add_library(hearth_options INTERFACE)
target_include_directories(hearth_options INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(hearth_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wno-sign-conversion -Wno-missing-field-initializers -Wnon-virtual-dtor -Wimplicit-fallthrough)

find_package(Threads REQUIRED)
target_link_libraries(hearth_options INTERFACE Threads::Threads)

if(HEARTH_SANITIZE)
  # Global, so that third-party code built here is checked as well.
  add_compile_options(-fsanitize=${HEARTH_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HEARTH_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
