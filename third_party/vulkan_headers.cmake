# Vulkan headers. 1.3.275 is the first release that has every extension the runtime must name
# (VK_KHR_cooperative_matrix); newer extensions are used behind #ifdef.
set(minimum 1.3.275)

# Sets RESULT to the version of the headers in FOLDER, or to nothing.
function(hearth_vulkan_header_version result folder)
  set(${result} "" PARENT_SCOPE)
  if(EXISTS "${folder}/vulkan/vulkan_core.h")
    file(STRINGS "${folder}/vulkan/vulkan_core.h" lines
      REGEX "^#define VK_HEADER_VERSION(_COMPLETE)? ")
    if("${lines}" MATCHES "VK_HEADER_VERSION ([0-9]+).*VERSION\\([0-9]+, *([0-9]+), *([0-9]+)")
      set(${result} "${CMAKE_MATCH_2}.${CMAKE_MATCH_3}.${CMAKE_MATCH_1}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

hearth_find_header(HEARTH_VULKAN_INCLUDE vulkan/vulkan_core.h)
hearth_vulkan_header_version(version "${HEARTH_VULKAN_INCLUDE}")
if(version AND version VERSION_GREATER_EQUAL minimum)
  set(folder "${HEARTH_VULKAN_INCLUDE}")
else()
  hearth_download(vulkan_headers https://github.com/KhronosGroup/Vulkan-Headers.git v1.4.309
    "libvulkan-dev ${minimum} or newer")
  set(folder "${vulkan_headers_SOURCE}/include")
  hearth_vulkan_header_version(version "${folder}")
endif()
message(STATUS "third_party: Vulkan headers ${version} in ${folder}")
hearth_define(vulkan_headers INCLUDE "${folder}" DEFINES VK_NO_PROTOTYPES=)
