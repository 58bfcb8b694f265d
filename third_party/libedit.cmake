# libedit: line editing and history for hearth chat. Optional: without it, lines are read without
# editing. Only the shared library is used: the static one needs libraries that its package does
# not name.
hearth_find_header(HEARTH_LIBEDIT_INCLUDE editline/readline.h)
hearth_find_library(HEARTH_LIBEDIT_LIBRARY edit)
if(HEARTH_LIBEDIT_INCLUDE AND HEARTH_LIBEDIT_LIBRARY AND NOT HEARTH_LIBEDIT_LIBRARY MATCHES "\\.a$")
  hearth_define(libedit INCLUDE "${HEARTH_LIBEDIT_INCLUDE}" LIBRARIES "${HEARTH_LIBEDIT_LIBRARY}"
    DEFINES HEARTH_HAS_LIBEDIT=1)
else()
  message(STATUS "third_party: libedit is not installed (package libedit-dev); line editing in "
    "hearth chat is left out")
  hearth_define(libedit)
endif()
