#include "tools/progress.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const std::string kErase = "\r\033[K";

// A terminal or a log without a person, and a clock that only moves when told to.
struct FakeOutput {
  ProgressOutput::Clock::time_point now = {};
  uint32_t columns = 80;
  std::vector<std::string> written;

  ProgressOutput make(ProgressOutput::Style style) {
    return {.style = style,
            .write = [this](std::string_view text) { written.emplace_back(text); },
            .columns = [this] { return columns; },
            .now = [this] { return now; }};
  }
};

TEST(Progress, RewritesOneLineWithAnEstimateAndErasesIt) {
  FakeOutput fake;
  {
    Progress progress("loading", fake.make(ProgressOutput::Style::kRewrite));
    progress.update(0, 100);
    EXPECT_THAT(fake.written, ElementsAre(kErase + "loading [" + std::string(30, ' ') + "] 0 %"));
    fake.now += seconds(10);
    progress.update(50, 100, "5 of 10 MB");
    EXPECT_EQ(fake.written.back(), kErase + "loading [" + std::string(15, '=') +
                                       std::string(15, ' ') +
                                       "] 50 %, 5 of 10 MB, about 10 s left");
  }
  EXPECT_THAT(fake.written, SizeIs(3));
  EXPECT_EQ(fake.written.back(), kErase);
}

TEST(Progress, DoesNotRewriteTheLineMoreOftenThanAnEyeCanFollow) {
  FakeOutput fake;
  Progress progress("work", fake.make(ProgressOutput::Style::kRewrite));
  for (int i = 0; i < 1000; ++i) {
    progress.update(i, 1000);
    fake.now += milliseconds(1);
  }
  EXPECT_THAT(fake.written, SizeIs(10));
}

TEST(Progress, WritesALineEveryTenSecondsToALog) {
  FakeOutput fake;
  {
    Progress progress("perplexity", fake.make(ProgressOutput::Style::kLines));
    for (int second = 0; second <= 25; ++second) {
      progress.update(second, 40, "chunk");
      fake.now += seconds(1);
    }
  }
  EXPECT_THAT(fake.written, ElementsAre("hearth: perplexity: 25 %, chunk, about 30 s left\n",
                                        "hearth: perplexity: 50 %, chunk, about 20 s left\n"));
}

TEST(Progress, WritesNothingToALogForShortWork) {
  FakeOutput fake;
  {
    Progress progress("loading", fake.make(ProgressOutput::Style::kLines));
    progress.update(0, 2);
    fake.now += seconds(9);
    progress.update(2, 2);
  }
  EXPECT_THAT(fake.written, IsEmpty());
}

TEST(Progress, WritesNothingAtAllWhenItIsOff) {
  FakeOutput fake;
  {
    Progress progress("bench", fake.make(ProgressOutput::Style::kNone));
    fake.now += seconds(60);
    progress.update(1, 2);
    progress.clear();
  }
  EXPECT_THAT(fake.written, IsEmpty());
}

TEST(Progress, StaysWithinTheColumnsOfATerminalThatShrinks) {
  FakeOutput fake;
  Progress progress("quantizing", fake.make(ProgressOutput::Style::kRewrite));
  const std::string detail = "tensor 3 of 291: blk.0.attn_output.weight Q4_K";
  for (const uint32_t columns : {200u, 80u, 60u, 20u, 5u, 1u, 0u}) {
    fake.columns = columns;
    fake.now += seconds(1);
    progress.update(1, 100, detail);
    const std::string line = fake.written.back().substr(kErase.size());
    EXPECT_LT(line.size(), std::max(columns, 2u)) << line;
    EXPECT_EQ(line.find('[') != std::string::npos, columns == 200) << line;
  }
}

TEST(Progress, NeverCutsACharacterInTwo) {
  FakeOutput fake;
  Progress progress("\xe2\x82\xac\xe2\x82\xac", fake.make(ProgressOutput::Style::kRewrite));
  fake.columns = 6;  // five bytes: one euro sign and two thirds of another
  progress.update(1, 100);
  EXPECT_EQ(fake.written.back(), kErase + "\xe2\x82\xac");
}

TEST(Progress, MakesRoomForOtherTextAndComesBack) {
  FakeOutput fake;
  Progress progress("bench", fake.make(ProgressOutput::Style::kRewrite));
  progress.clear();
  EXPECT_THAT(fake.written, IsEmpty()) << "there was no line to erase";
  progress.update(1, 2);
  progress.clear();
  EXPECT_EQ(fake.written.back(), kErase);
  progress.update(1, 2);
  EXPECT_THAT(fake.written.back(), StartsWith(kErase + "bench"));
}

TEST(Progress, MakesNoEstimateOfWorkThatHasJustBegunOrHasNoSize) {
  FakeOutput fake;
  Progress progress("work", fake.make(ProgressOutput::Style::kRewrite));
  fake.now += milliseconds(900);
  progress.update(50, 100);
  EXPECT_THAT(fake.written.back(), Not(HasSubstr("left")));
  fake.now += seconds(10);
  progress.update(0, 100);
  EXPECT_THAT(fake.written.back(), Not(HasSubstr("left")));
  fake.now += seconds(10);
  progress.update(0, 0);
  EXPECT_THAT(fake.written.back(), EndsWith("100 %"));
  fake.now += seconds(10);
  progress.update(7, 5);
  EXPECT_THAT(fake.written.back(), EndsWith("100 %"));
}

TEST(FormatDuration, IsAsExactAsAnEstimateDeserves) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(7.2), "8 s");
  EXPECT_EQ(format_duration(59.5), "1 min 0 s");
  EXPECT_EQ(format_duration(80), "1 min 20 s");
  EXPECT_EQ(format_duration(25 * 60 + 7), "25 min");
  EXPECT_EQ(format_duration(65 * 60), "1 h 05 min");
  EXPECT_EQ(format_duration(-3), "0 s");
  EXPECT_EQ(format_duration(1e300), "100000 h 00 min");
}

}  // namespace
}  // namespace hearth
