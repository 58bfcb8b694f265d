# Unity builds: several source files of a target are compiled as one, because most of a file's
# compile time goes into headers that its neighbours include as well. Building `hearth` from nothing
# takes a third of the CPU time this way (batches of 8 files: half; one batch needs 1 GB of memory);
# changing one file recompiles its batch, 5 to 20 seconds. Presets other than release compile file by
# file, which also finds missing includes.
option(HEARTH_UNITY "Compile several source files at a time" OFF)

# hearth_unity(TARGET...): call it for libraries and programs of more than a few files. Names in
# anonymous namespaces must differ within a target.
function(hearth_unity)
  if(HEARTH_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
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
