# CLI11 parses the command line, headers only.
hearth_find_header(HEARTH_CLI11_INCLUDE CLI/CLI.hpp)
if(HEARTH_CLI11_INCLUDE)
  set(folder "${HEARTH_CLI11_INCLUDE}")
else()
  hearth_download(cli11 https://github.com/CLIUtils/CLI11.git v2.4.2 libcli11-dev)
  set(folder "${cli11_SOURCE}/include")
endif()
hearth_define(cli11 INCLUDE "${folder}")
