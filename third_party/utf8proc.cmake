# utf8proc: Unicode normal forms.
hearth_find_header(HEARTH_UTF8PROC_INCLUDE utf8proc.h)
hearth_find_library(HEARTH_UTF8PROC_LIBRARY utf8proc)
if(HEARTH_UTF8PROC_INCLUDE AND HEARTH_UTF8PROC_LIBRARY)
  hearth_define(utf8proc INCLUDE "${HEARTH_UTF8PROC_INCLUDE}"
    LIBRARIES "${HEARTH_UTF8PROC_LIBRARY}")
else()
  enable_language(C)
  hearth_download(utf8proc https://github.com/JuliaStrings/utf8proc.git v2.8.0 libutf8proc-dev BUILD)
  hearth_define(utf8proc LIBRARIES utf8proc)
endif()
