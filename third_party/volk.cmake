# volk loads Vulkan's functions at run time, so that nothing links with libvulkan. Headers only:
# one source file of the runtime defines VOLK_IMPLEMENTATION, and volk.h then includes volk.c.
hearth_use(vulkan_headers)
hearth_find_header(HEARTH_VOLK_INCLUDE volk.c)
if(HEARTH_VOLK_INCLUDE)
  set(folder "${HEARTH_VOLK_INCLUDE}")
else()
  hearth_download(volk https://github.com/zeux/volk.git 1.4.304 libvulkan-volk-dev)
  set(folder "${volk_SOURCE}")
endif()
hearth_define(volk INCLUDE "${folder}" LIBRARIES hearth::vulkan_headers ${CMAKE_DL_LIBS})
