# Dear ImGui with its GLFW and Vulkan backends, built from source: from Debian's source package if
# tools/setup could fetch it, otherwise from a download. The library packages are not used,
# because they are older (the dashboard needs 1.92) and their Vulkan backend links with libvulkan.
# Here the backend has no prototypes: call ImGui_ImplVulkan_LoadFunctions() before its Init. It is
# built with the hooks of its test engine, which ui/item_log.cpp defines.
hearth_use(vulkan_headers glfw)
hearth_forget_if_gone(HEARTH_IMGUI_SOURCE)
find_path(HEARTH_IMGUI_SOURCE NAMES backends/imgui_impl_vulkan.cpp
  PATHS "${HEARTH_DEPS_DIR}/imgui" NO_DEFAULT_PATH)
mark_as_advanced(HEARTH_IMGUI_SOURCE)
set(source "${HEARTH_IMGUI_SOURCE}")
if(NOT source)
  hearth_download(imgui https://github.com/ocornut/imgui.git v1.92.2b
    "imgui, Debian's source package")
  set(source "${imgui_SOURCE}")
endif()
add_library(hearth_imgui STATIC EXCLUDE_FROM_ALL
  "${source}/imgui.cpp" "${source}/imgui_demo.cpp" "${source}/imgui_draw.cpp"
  "${source}/imgui_tables.cpp" "${source}/imgui_widgets.cpp"
  "${source}/backends/imgui_impl_glfw.cpp" "${source}/backends/imgui_impl_vulkan.cpp")
add_library(hearth::imgui ALIAS hearth_imgui)
target_include_directories(hearth_imgui SYSTEM PUBLIC "${source}" "${source}/backends")
target_compile_definitions(hearth_imgui PUBLIC IMGUI_IMPL_VULKAN_NO_PROTOTYPES=
  IMGUI_ENABLE_TEST_ENGINE= IMGUI_USE_WCHAR32= IMGUI_DISABLE_DEMO_WINDOWS=)
target_link_libraries(hearth_imgui PUBLIC hearth::vulkan_headers hearth::glfw)
