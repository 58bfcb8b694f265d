# Unity builds: several source files of a target are compiled as one, because most of a file's
# compile time goes into headers that its neighbours include as well. Building `hearth` from nothing
# takes a third of the CPU time this way; changing one file recompiles its batch, 10 to 40 seconds.
# Presets other than release compile file by file, which also finds missing includes.
option(HEARTH_UNITY "Compile several source files at a time" OFF)

# Large batches save the most CPU time; many cores want more batches than that, and each compiler in
# parallel wants its memory (1.6 GB for a batch of 48).
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
math(EXPR memory_per_core "${memory} / ${cores}")
set(batch 24)
if(cores LESS_EQUAL 4 AND memory_per_core GREATER_EQUAL 1800)
  set(batch 48)
endif()
set(HEARTH_UNITY_BATCH ${batch} CACHE STRING "How many files to compile at a time")

# hearth_unity(TARGET...): call it for libraries and programs of more than a few files. Names in
# anonymous namespaces must differ within a target.
function(hearth_unity)
  if(HEARTH_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HEARTH_UNITY_BATCH})
    # g++ takes every file but the first for a header, where a private class with a member from an
    # anonymous namespace would be a mistake.
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endforeach()
  endif()
endfunction()

# hearth_quick_to_compile(TARGET...): for code where no time is spent, commands and forms of text. A
# third less to compile, and small functions, of which templates have many, are still inlined.
function(hearth_quick_to_compile)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>
      $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-finline-small-functions>)
  endforeach()
endfunction()
