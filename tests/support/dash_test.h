// Plays scripts in the dashboard, as a user would use it: under Xvfb, with validation layers on.
// What the panels show is read from the values they report.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/display.h"
#include "tests/support/hearth_program.h"

namespace hearth::testing {

// A small model, which lavapipe runs quickly.
inline const std::string kSmallModel = HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf";

class DashTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { display_ = std::make_unique<Display>(); }
  static void TearDownTestSuite() { display_.reset(); }

  void SetUp() override {
    if (display_->name().empty()) GTEST_SKIP() << "Xvfb is not installed";
    folder_ = std::filesystem::path(::testing::TempDir()) /
              fmt::format("hearth_dash_{}_{}", getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs the dashboard with a script. Settings and conversations are saved in the test's folder.
  // Windows with different names may run at a time; each has a folder of its own.
  Finished play(const std::string& script, std::vector<std::string> arguments,
                const std::string& name = {}) const {
    const std::filesystem::path folder = folder_ / name;
    std::filesystem::create_directories(folder);
    const std::filesystem::path file = folder / "script.txt";
    std::ofstream(file) << script;
    arguments.insert(arguments.begin(), "dash");
    for (const std::string& one :
         {std::string("--script"), file.string(), std::string("--output"), folder.string(),
          std::string("--state"), (folder / "state").string(), std::string("--fps"),
          std::string("30"), std::string("--validate")})
      arguments.push_back(one);
    return hearth(arguments, {"DISPLAY=" + display_->name(), "WAYLAND_DISPLAY="});
  }

  // A script of tests/ui.
  static std::string tour(const std::string& file) {
    std::ifstream in(HEARTH_SOURCE_DIR "/tests/ui/" + file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  nlohmann::json values(const std::string& file) const {
    std::ifstream in(folder_ / file);
    return nlohmann::json::parse(in, nullptr, false);
  }

  static inline std::unique_ptr<Display> display_;
  std::filesystem::path folder_;
};

}  // namespace hearth::testing
