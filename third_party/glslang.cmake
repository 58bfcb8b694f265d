# The shader compiler: hearth::glslang, the libraries of glslang and SPIRV-Tools, which compile the
# kernels if HEARTH_KERNELS_BY_LIBRARY; and three programs that come with them, as cache variables:
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
  set(${variable}_VERSION "${version}" PARENT_SCOPE)
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

# The libraries. From glslang 15 on, all parts of it but `glslang` are empty or missing.
cmake_path(SET private NORMALIZE "${HEARTH_DEPS_DIR}/tools/usr")  # as CMake writes what it finds
file(GLOB private_libraries "${private}/lib/*-linux-gnu*")
hearth_find_header(HEARTH_GLSLANG_INCLUDE glslang/build_info.h "${private}/include")
set(libraries "")
foreach(part SPIRV glslang MachineIndependent GenericCodeGen OSDependent
    glslang-default-resource-limits SPIRV-Tools-opt SPIRV-Tools)
  hearth_find_library(HEARTH_${part}_LIBRARY ${part} ${private_libraries})
  if(HEARTH_${part}_LIBRARY)
    list(APPEND libraries "${HEARTH_${part}_LIBRARY}")
  endif()
endforeach()

# The command finds out which features there are, and the library compiles what needs them. Without a
# library of the command's release, the command compiles every kernel, which takes longer.
set(version "none")
if(HEARTH_GLSLANG_INCLUDE AND HEARTH_glslang_LIBRARY AND HEARTH_SPIRV-Tools_LIBRARY)
  file(STRINGS "${HEARTH_GLSLANG_INCLUDE}/glslang/build_info.h" version
    REGEX "define GLSLANG_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" version "${version}")
  list(JOIN version "." version)
endif()
if(NOT version STREQUAL HEARTH_GLSLANG_VERSION)
  message(STATUS "third_party: glslang's library: ${version}, so kernels are compiled one by one; the "
    "packages glslang-dev and spirv-tools of the command's release make this quicker")
  set(HEARTH_KERNELS_BY_LIBRARY OFF CACHE INTERNAL "Whether the library compiles the kernels")
  add_library(hearth_glslang INTERFACE)
  add_library(hearth::glslang ALIAS hearth_glslang)
  return()
endif()
set(HEARTH_KERNELS_BY_LIBRARY ON CACHE INTERNAL "Whether the library compiles the kernels")

# The private prefix's libraries want a newer C library than the system has, so they are linked, and
# run, with the one that is beside them.
set(loader "")
set(use_loader "")
if(HEARTH_GLSLANG_INCLUDE STREQUAL "${private}/include")
  file(GLOB loader "${private_libraries}/ld-linux*.so.[0-9]" "${private_libraries}/ld64.so.[0-9]")
  # An RPATH, not a RUNPATH: LD_LIBRARY_PATH must not put the system's C library first.
  set(use_loader "LINKER:--dynamic-linker,${loader}" "LINKER:--disable-new-dtags")
  foreach(name libstdc++.so.6 libgcc_s.so.1 libm.so.6 libc.so.6)
    list(APPEND libraries "${private_libraries}/${name}")
  endforeach()
endif()
hearth_define(glslang INCLUDE "${HEARTH_GLSLANG_INCLUDE}" LIBRARIES ${libraries} ${loader})
target_link_options(hearth_glslang INTERFACE ${use_loader})
