# The shader compiler and its companions, as cache variables:
#   HEARTH_GLSLANG  HEARTH_SPIRV_VAL  HEARTH_SPIRV_DIS
# They are searched in CMAKE_PREFIX_PATH, then in the private prefix's bin, then in PATH. glslang
# 13 and SPIRV-Tools 2023.3 are the first that support cooperative matrices; older ones would
# compile or accept such a shader wrongly, so they are refused. There is no download: tools/setup
# installs them.
set(minimum_glslang 13)
set(minimum_spirv_tools 2023.3)

# hearth_find_shader_tool(VARIABLE NAME...): the program, or an error that says what to install.
function(hearth_find_shader_tool variable)
  hearth_forget_if_gone(${variable})
  find_program(${variable} NAMES ${ARGN} NAMES_PER_DIR HINTS "${HEARTH_DEPS_DIR}/bin")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    list(GET ARGN 0 name)
    message(FATAL_ERROR "${name} is not installed. Run tools/setup, or install the packages "
      "glslang-tools (${minimum_glslang} or newer) and spirv-tools (${minimum_spirv_tools} or "
      "newer).")
  endif()
endfunction()

# hearth_check_shader_tool(VARIABLE PATTERN MINIMUM): refuses a version that is too old; the first
# group of PATTERN matches the version in the output of --version.
function(hearth_check_shader_tool variable pattern minimum)
  execute_process(COMMAND "${${variable}}" --version OUTPUT_VARIABLE output ERROR_VARIABLE output
    RESULT_VARIABLE status)
  if(NOT "${output}" MATCHES "${pattern}")
    message(FATAL_ERROR "${${variable}} --version printed no version (${status}): "
      "${output}")
  endif()
  set(version "${CMAKE_MATCH_1}")
  message(STATUS "third_party: ${${variable}} ${version}")
  if(version VERSION_LESS minimum)
    set(found "${${variable}}")
    unset(${variable} CACHE)
    message(FATAL_ERROR "${found} is ${version}; ${minimum} or newer is needed. "
      "Run tools/setup to install a newer one.")
  endif()
endfunction()

hearth_find_shader_tool(HEARTH_GLSLANG glslang glslangValidator)
hearth_find_shader_tool(HEARTH_SPIRV_VAL spirv-val)
hearth_find_shader_tool(HEARTH_SPIRV_DIS spirv-dis)
hearth_check_shader_tool(HEARTH_GLSLANG "Glslang Version: [0-9]+:([0-9.]+)" ${minimum_glslang})
hearth_check_shader_tool(HEARTH_SPIRV_VAL "SPIRV-Tools v([0-9.]+)" ${minimum_spirv_tools})
add_library(hearth_glslang INTERFACE)
add_library(hearth::glslang ALIAS hearth_glslang)
