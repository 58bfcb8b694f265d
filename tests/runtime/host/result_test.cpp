#include "runtime/result.h"

#include <memory>

#include <gtest/gtest.h>

#include "runtime/faults.h"
#include "runtime/log.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{ErrorKind::kInvalid, "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  HEARTH_ASSIGN(const int once, half(value));
  HEARTH_ASSIGN(const int twice, half(once));
  return twice;
}

Status check(int value) {
  HEARTH_TRY(quarter(value));
  return {};
}

TEST(ResultTest, ValuesAndErrorsPassThroughTheMacros) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check(4).ok());
  EXPECT_EQ(check(2).error().kind, ErrorKind::kInvalid);
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 3);
}

TEST(FaultSwitchTest, FailsOnceAtTheNthOccurrence) {
  FaultSwitch fault;
  EXPECT_FALSE(fault.should_fail());
  fault.arm(3);
  EXPECT_FALSE(fault.should_fail());
  EXPECT_FALSE(fault.should_fail());
  EXPECT_TRUE(fault.pending());
  EXPECT_TRUE(fault.should_fail());
  EXPECT_FALSE(fault.should_fail());
  EXPECT_FALSE(fault.pending());
}

TEST(LogTest, SinkReceivesLinesDuringItsLifetime) {
  std::vector<std::string> lines;
  {
    const ScopedLogSink sink([&](std::string_view line) { lines.emplace_back(line); });
    log_line("one");
    {
      const ScopedLogSink inner([](std::string_view) {});
      log_line("two");
    }
    log_line("three");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "three"}));
}

TEST(FormatBytesTest, PicksTheUnit) {
  EXPECT_EQ(format_bytes(17), "17 bytes");
  EXPECT_EQ(format_bytes(384ull << 20), "384 MiB");
  EXPECT_EQ(format_bytes(3ull << 29), "1.50 GiB");
}

}  // namespace
}  // namespace hearth
