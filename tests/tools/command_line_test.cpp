// The program as a user starts it: what it prints where, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CommandLine, DevicesNamesTheChosenOne) {
  const Finished result = hearth({"devices"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(chosen)"));
}

TEST(CommandLine, NoCommandDoesSomethingUseful) {
  const Finished result = hearth({}, {"DISPLAY=", "WAYLAND_DISPLAY="});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.out.empty());
}

TEST(CommandLine, DevicesJsonHasWhatScriptsRelyOn) {
  const Finished result = hearth({"devices", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  ASSERT_FALSE(json["devices"].empty());
  int chosen = 0;
  for (const auto& device : json["devices"]) {
    for (const char* key : {"index", "name", "type", "driver", "api", "memory_bytes", "free_bytes",
                            "subgroup", "features", "chosen", "refused"})
      EXPECT_TRUE(device.contains(key)) << key;
    EXPECT_GT(device["memory_bytes"].get<uint64_t>(), 0u);
    chosen += device["chosen"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(chosen, 1);
}

TEST(CommandLine, BenchKernelsJsonHasWhatScriptsRelyOn) {
  const Finished result = hearth({"bench", "--kernels", "--json", "--filter", "rms_norm"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << result.out;
  EXPECT_GT(json["ceilings"]["read_bytes_per_s"].get<double>(), 0);
  EXPECT_GT(json["ceilings"]["flops_per_s"].get<double>(), 0);
  ASSERT_FALSE(json["kernels"].empty());
  for (const auto& kernel : json["kernels"]) {
    for (const char* key :
         {"kernel", "variant", "shape", "seconds", "bytes_per_s", "flops_per_s", "share"})
      EXPECT_TRUE(kernel.contains(key)) << key;
    EXPECT_GT(kernel["seconds"].get<double>(), 0);
  }
}

TEST(CommandLine, AWrongWordIsAUsageErrorInOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"frobnicate"},
        {"devices", "--frobnicate"},
        {"bench", "--filter", "x"},
        {"serve", "--port", "70000"},
        {"serve", "--api-key", ""},
        {"serve", "--max-seqs", "0"},
        {"serve", "--max-queue", "0"},
        {"serve", "--policy", "best"},
        {"info", "--max-step-tokens", "4294967295"},
        {"run", "-p", "x", "--top-p", "2"},
        {"run", "-p", "x", "--temp", "nan"},
        {"run", "-p", "x", "--seed", "-1"},
        {"run", "-p", "x", "--seed", "99999999999999999999"},
        {"run", "-p", "x", "-n", ""},
        {"run", "-p", "x", "-n", "010"},
        {"logits", "--ids", "1,007"},
        {"run", "-p", "x", "--swap", "-1"},
        {"logits", "--ids", ""},
        {"bench", "-p", "4294967295"},
        {"serve", "--max-body", "-1"},
        {"serve", "--time-limit", "-1"},
        {"run", "-p", "x", "--logprobs", "3"},
        {"run", "-p", "x", "--system", "y"},
        {"detokenize", "one"},
        {"devices", "-d"}}) {
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0];
    expect_one_line(result.err);
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(CommandLine, ADeviceThatIsNotThereIsAFailureInOneLine) {
  const Finished result = hearth({"bench", "--kernels", "-d", "no such card"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
  EXPECT_THAT(result.err, HasSubstr("no such card"));
}

TEST(CommandLine, NothingToTimeIsAFailureInOneLine) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bench", "--kernels", "--filter", "no such family"},
        {"bench", "-p", "0", "-n", "0"}}) {
    const Finished result = hearth(arguments);
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result.err);
    EXPECT_TRUE(result.out.empty());
  }
}

TEST(CommandLine, ADeviceThatIsNotThereHasNoFacts) {
  const Finished result = hearth({"info", "-d", "no such card"});
  EXPECT_EQ(result.exit_code, 1);
  expect_one_line(result.err);
}

// Through a shell, which closes and redirects what programs begin with.
Finished in_shell(const std::string& command) {
  return run_program({"/bin/sh", "-c", "\"$0\" \"$1\" " + command, HEARTH_LAUNCHER, HEARTH_BINARY});
}

TEST(CommandLine, WhatCannotBePrintedIsAFailureInOneLine) {
  for (const char* command : {"--version >/dev/full", "--help >/dev/full",
                              "tokenize hello >/dev/full", "tokenize hello >&-"}) {
    const Finished result = in_shell(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("standard output")) << command;
  }
}

TEST(CommandLine, WhatCannotBeReadIsAFailureInOneLine) {
  for (const char* command : {"tokenize </", "tokenize --file /proc/self/mem"}) {
    const Finished result = in_shell(command);
    EXPECT_EQ(result.exit_code, 1) << command;
    expect_one_line(result.err);
    EXPECT_THAT(result.err, HasSubstr("cannot read")) << command;
  }
  // Nothing to read is no failure, and no file that a driver opened is read instead.
  EXPECT_EQ(in_shell("chat -n 1 <&-").exit_code, 0);
}

TEST(CommandLine, HelpAndVersion) {
  EXPECT_THAT(hearth({"--help"}).out, HasSubstr("devices"));
  EXPECT_EQ(hearth({"bench", "--help"}).exit_code, 0);
  EXPECT_THAT(hearth({"--version"}).out, StartsWith("hearth "));
}

}  // namespace
}  // namespace hearth::testing
