// Runs a program as a user would and keeps what it printed.
#pragma once

#include <string>
#include <vector>

namespace hearth::testing {

struct Finished {
  int exit_code = -1;  // 128 + signal where one ended it
  std::string out, err;
};

// Starts `arguments[0]`, with the environment given as NAME=VALUE on top of ours and `input` on a
// pipe as its standard input, and waits.
Finished run_program(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment = {},
                     const std::string& input = {});

}  // namespace hearth::testing
