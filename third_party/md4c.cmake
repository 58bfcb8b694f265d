# md4c reads Markdown for the dashboard's chat. Optional: without it, answers are plain text.
hearth_find_header(HEARTH_MD4C_INCLUDE md4c.h)
hearth_find_library(HEARTH_MD4C_LIBRARY md4c)
if(HEARTH_MD4C_INCLUDE AND HEARTH_MD4C_LIBRARY)
  hearth_define(md4c INCLUDE "${HEARTH_MD4C_INCLUDE}" LIBRARIES "${HEARTH_MD4C_LIBRARY}"
    DEFINES HEARTH_HAS_MD4C=1)
else()
  message(STATUS "third_party: md4c is not installed (package libmd4c-dev); Markdown in the "
    "dashboard's chat is left out")
  hearth_define(md4c)
endif()
