// Starts the program `hearth` for tests. REQUIRES: HEARTH_BINARY is defined (tests/CMakeLists.txt).
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace hearth::testing {

// `environment` is added to ours, as NAME=VALUE.
inline Finished hearth(std::vector<std::string> arguments,
                       const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), {HEARTH_LAUNCHER, HEARTH_BINARY});
  return run_program(arguments, environment);
}

// The JSON object that it prints; an empty one and a test failure if it prints none, or ends with
// another exit code.
inline nlohmann::json hearth_json(std::vector<std::string> arguments,
                                  const std::vector<std::string>& environment = {},
                                  int exit_code = 0) {
  arguments.push_back("--json");
  const Finished result = hearth(arguments, environment);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  auto json = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out;
  return json.is_object() ? json : nlohmann::json::object();
}

inline void expect_one_line(const std::string& text) {
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_THAT(text, ::testing::StartsWith("hearth: "));
}

}  // namespace hearth::testing
