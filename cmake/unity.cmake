# Unity builds: several source files of a target are compiled as one, because most of a file's
# compile time goes into headers that its neighbours include as well. Building `hearth` from nothing
# takes a third of the CPU time this way; changing one file recompiles its batch, 10 to 50 seconds.
# Presets other than release compile file by file, which also finds missing includes.
option(HEARTH_UNITY "Compile several source files at a time" OFF)

# Large batches save the most CPU time; many cores want more batches than that, and each compiler in
# parallel wants its memory (1.1 GB for a batch of 48, 1.8 GB for one of 64).
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # MiB
math(EXPR memory_per_core "${memory} / ${cores}")
set(batch 24)
if(cores LESS_EQUAL 4 AND memory_per_core GREATER_EQUAL 3000)
  set(batch 64)
elseif(cores LESS_EQUAL 4 AND memory_per_core GREATER_EQUAL 1800)
  set(batch 48)
endif()
set(HEARTH_UNITY_BATCH ${batch} CACHE STRING "About how many files to compile at a time")

# hearth_unity(TARGET...): call it for libraries and programs of more than a few files, once their
# sources are known. They become batches of equal size, because a small batch for the rest would
# read almost as many headers as a large one. Names in anonymous namespaces must differ within a
# target.
function(hearth_unity)
  if(NOT HEARTH_UNITY)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    set(batches 1)
    if(HEARTH_UNITY_BATCH GREATER 0 AND count GREATER HEARTH_UNITY_BATCH)
      math(EXPR batches "(${count} + ${HEARTH_UNITY_BATCH} / 2) / ${HEARTH_UNITY_BATCH}")
    endif()
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    # g++ takes every file but the first for a header, where a private class with a member from an
    # anonymous namespace would be a mistake.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    # By default g++ searches its heap for garbage from 128 MB on, again and again: a tenth of its
    # time, which large batches need not spend where there is memory. From 1 GB on it hardly does.
    if(memory_per_core GREATER_EQUAL 3000)
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
    endif()
  endforeach()
endfunction()

# hearth_quick_to_compile(TARGET...): for code where no time is spent, commands and forms of text. A
# third less to compile, and small functions, of which templates have many, are still inlined.
function(hearth_quick_to_compile)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>
      $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-finline-small-functions>)
  endforeach()
endfunction()

# hearth_quickest_to_compile(TARGET...): for code that runs once per command, such as reading options
# and printing results. Another quarter less.
function(hearth_quickest_to_compile)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  endforeach()
endfunction()
