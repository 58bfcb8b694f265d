# The dashboard's fonts, embedded in the program: Roboto for text, with DejaVu Sans for characters it
# lacks, and DejaVu Sans Mono for code. Optional: what is missing is looked for when the program
# starts. The files come from packages only; both licences allow embedding.
set(fonts text:Roboto-Regular.ttf bold:Roboto-Bold.ttf mono:DejaVuSansMono.ttf
  more:DejaVuSans.ttf)
set(assembly "  .section .rodata\n")
set(files)
foreach(font IN LISTS fonts)
  string(REGEX REPLACE ":.*" "" kind "${font}")
  string(REGEX REPLACE ".*:" "" name "${font}")
  string(TOUPPER "HEARTH_FONT_${kind}" variable)
  hearth_forget_if_gone(${variable})
  find_file(${variable} NAMES "${name}" PATHS /usr/share/fonts /usr/local/share/fonts PATH_SUFFIXES
    truetype/roboto/unhinted/RobotoTTF truetype/roboto/unhinted truetype/dejavu TTF
    google-roboto dejavu-sans-fonts dejavu-sans-mono-fonts NO_DEFAULT_PATH)
  mark_as_advanced(${variable})
  set(include)
  if(${variable})
    set(include "  .incbin \"${${variable}}\"\n")
    list(APPEND files "${${variable}}")
  else()
    message(STATUS "third_party: ${name} is not installed (packages fonts-roboto-unhinted, "
      "fonts-dejavu-core); the dashboard looks for fonts when it starts")
  endif()
  string(APPEND assembly "  .global hearth_font_${kind}_begin\n  .global hearth_font_${kind}_end\n"
    "  .balign 16\nhearth_font_${kind}_begin:\n${include}hearth_font_${kind}_end:\n  .byte 0\n")
endforeach()
string(APPEND assembly "  .section .note.GNU-stack, \"\", %progbits\n")
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/fonts.S" @ONLY CONTENT "${assembly}")
set_source_files_properties("${CMAKE_CURRENT_BINARY_DIR}/fonts.S" PROPERTIES
  OBJECT_DEPENDS "${files}")
add_library(hearth_fonts STATIC EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/fonts.S")
add_library(hearth::fonts ALIAS hearth_fonts)
