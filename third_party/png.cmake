# libpng writes the dashboard's screenshots. Only ui/ uses it, and leaves the dashboard out if it
# is missing.
hearth_find_header(HEARTH_PNG_INCLUDE png.h)
hearth_find_library(HEARTH_PNG_LIBRARY png)
hearth_define(png INCLUDE "${HEARTH_PNG_INCLUDE}" LIBRARIES "${HEARTH_PNG_LIBRARY}")
