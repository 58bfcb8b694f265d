# GLFW opens the dashboard's window. Only ui/ uses it, and leaves the dashboard out if it is
# missing: building it from source would need the headers of a whole desktop.
hearth_find_header(HEARTH_GLFW_INCLUDE GLFW/glfw3.h)
hearth_find_library(HEARTH_GLFW_LIBRARY glfw)
hearth_define(glfw INCLUDE "${HEARTH_GLFW_INCLUDE}" LIBRARIES "${HEARTH_GLFW_LIBRARY}"
  DEFINES GLFW_INCLUDE_NONE=)
