# Vulkan Memory Allocator, one header.
hearth_use(vulkan_headers)
hearth_find_header(HEARTH_VMA_INCLUDE vk_mem_alloc.h PATH_SUFFIXES vma)
if(HEARTH_VMA_INCLUDE)
  set(folder "${HEARTH_VMA_INCLUDE}")
else()
  hearth_download(vma https://github.com/GPUOpen-LibrariesAndSDKs/VulkanMemoryAllocator.git v3.2.1
    libvulkan-memory-allocator-dev)
  set(folder "${vma_SOURCE}/include")
endif()
hearth_define(vma INCLUDE "${folder}" LIBRARIES hearth::vulkan_headers)
