// Runs a program as a user would and captures its output.
#pragma once

#include <string>
#include <vector>

namespace hearth::testing {

struct Finished {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out, err;
};

// Starts `arguments[0]` with `environment` (NAME=VALUE) added to ours and `input` on a pipe as its
// standard input, and waits for it.
Finished run_program(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment = {},
                     const std::string& input = {});

}  // namespace hearth::testing
