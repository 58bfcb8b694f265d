// Lessons on the engine on display: what is measured, what is refused, and what is left behind.
#include "ui/data/lesson_player.h"

#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/lessons/lesson_library.h"
#include "tools/lessons/lesson_parser.h"
#include "tools/replay/modelled_executor.h"
#include "ui/data/lesson_desk.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kPlayedLesson = R"(title: T
summary: s
order: 5
explanation: e
load: synthetic:n=12,prompt=8..40,gen=4..24,seed=1
engine: max-seqs=4 kv-blocks=32
run static: static
run continuous: continuous max-step-tokens=64
question: q
measure: steps(static) / steps(continuous)
choice a: below 1: fewer
choice b: from 1: as many or more
show: steps padding
answer: {steps(static)} and {steps(continuous)} steps.
look-at: l
try: t
)";

// A card on which steps take next to no time.
ModelledDevice fast_card() {
  ModelledDevice device;
  device.memory_bytes_per_s = 1e16;
  device.matmul_flops_per_s = device.attention_flops_per_s = 1e18;
  device.step_overhead_seconds = 20e-6;
  return device;
}

class LessonOnStage : public ::testing::Test {
 protected:
  LessonStage stage() {
    return {.engine = &engine_,
            .generation = generation_,
            .modelled = true,
            .kv_bytes_per_block = 1000,
            .weight_bytes = 1e6,
            .model = "model",
            .device = "device"};
  }
  // Draws frames until the player has stopped.
  Result<LessonResults> play(const Lesson& lesson, bool slowed_later = false) {
    player_.start(lesson, stage());
    bool slowed = false;
    for (int frame = 0; player_.running() && frame < 10000; ++frame) {
      player_.update(stage(), slowed);
      slowed = slowed_later;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::optional<Result<LessonResults>> results = player_.take_results();
    EXPECT_TRUE(results.has_value());
    return results ? *results : Result<LessonResults>(invalid("it never ended"));
  }

  const Lesson lesson_ = parse_lesson(kPlayedLesson, "played").value();
  ModelledExecutor executor_{fast_card()};
  Engine engine_{
      executor_,
      nullptr,
      {.limits = {.max_sequences = 8, .max_step_tokens = 128, .context = 512, .pool_blocks = 64},
       .vocabulary = 1000}};
  uint64_t generation_ = 1;
  LessonPlayer player_;
};

TEST_F(LessonOnStage, MeasuresEveryRunAndRestoresTheEngine) {
  const Policy before = engine_.policy();
  const Result<LessonResults> results = play(lesson_);
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ(results->runs.size(), 2u);
  EXPECT_TRUE(results->simulated);
  const ReplayReport &fixed = results->runs[0].report, &continuous = results->runs[1].report;
  EXPECT_EQ(results->runs[0].name, "static");
  EXPECT_EQ(fixed.requests, 12u);
  EXPECT_EQ(fixed.failed, 0u);
  EXPECT_EQ(fixed.generated_tokens, continuous.generated_tokens);
  EXPECT_GT(fixed.padding_share, 0);
  EXPECT_EQ(continuous.padding_share, 0);
  EXPECT_GT(fixed.steps, continuous.steps);
  EXPECT_EQ(answer_of(lesson_, *results)->letter, 'b');
  engine_.inspect([](const Scheduler&) {});
  EXPECT_EQ(engine_.policy(), before);
  EXPECT_EQ(engine_.limits().max_sequences, 8u);
  EXPECT_EQ(engine_.limits().pool_blocks, 64u);
}

TEST_F(LessonOnStage, SecondTimeFindsNothingInThePrefixCache) {
  for (int time = 0; time < 2; ++time) {
    const Result<LessonResults> results = play(lesson_);
    ASSERT_TRUE(results.ok()) << results.error().message;
    EXPECT_EQ(results->runs[1].report.prefix_hit_share, 0);
  }
}

TEST_F(LessonOnStage, NothingIsMeasuredIfTheEngineWasSlowed) {
  const Result<LessonResults> results = play(lesson_, /*slowed_later=*/true);
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(results.error().message, HasSubstr("paused or in slow motion"));
}

TEST_F(LessonOnStage, NothingIsMeasuredIfOthersRan) {
  player_.start(lesson_, stage());
  player_.update(stage(), false);
  GenerationRequest other{.prompt = {1, 2, 3}, .max_tokens = 2};
  other.ignore_end = true;
  Result<TokenStream> stream = engine_.submit(other);
  ASSERT_TRUE(stream.ok());
  for (int frame = 0; player_.running() && frame < 10000; ++frame) {
    player_.update(stage(), false);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::optional<Result<LessonResults>> results = player_.take_results();
  ASSERT_TRUE(results.has_value());
  ASSERT_FALSE(results->ok());
  EXPECT_THAT(results->error().message, HasSubstr("Other requests"));
}

TEST_F(LessonOnStage, EndsWithTheEngine) {
  player_.start(lesson_, stage());
  player_.update(stage(), false);
  ++generation_;
  player_.update(stage(), false);
  EXPECT_FALSE(player_.running());
  EXPECT_THAT(player_.take_results()->error().message, HasSubstr("engine was closed"));
}

TEST_F(LessonOnStage, SaysWhyItCannotBeLive) {
  EXPECT_EQ(why_not_live(lesson_, stage()), "");
  Lesson larger = lesson_;
  larger.runs[0].settings.max_sequences = 9;
  EXPECT_THAT(why_not_live(larger, stage()), HasSubstr("needs 9 sequences, and this engine has 8"));
  larger = lesson_;
  larger.runs[0].settings.kv_blocks = 65;
  EXPECT_THAT(why_not_live(larger, stage()), HasSubstr("65 KV blocks"));
  larger = lesson_;
  larger.runs[1].policy = "continuous+preemption=swap";
  EXPECT_THAT(why_not_live(larger, stage()), HasSubstr("no host memory"));
  EXPECT_THAT(why_not_live(*find_lesson("speculation"), stage()), HasSubstr("decoding"));
  EXPECT_THAT(why_not_live(lesson_, {}), HasSubstr("no engine"));
}

TEST_F(LessonOnStage, TheDeskRemembersWhatWasPredicted) {
  LessonDesk desk;
  EXPECT_EQ(desk.completed(), 0u);
  EXPECT_THAT(desk.open("no-such-lesson", stage()), HasSubstr("there is no lesson"));
  EXPECT_EQ(desk.current(), nullptr);
  // It changes the weights, so it is simulated.
  ASSERT_EQ(desk.open("quantization", stage()), "");
  desk.prediction = 'a';
  desk.run(stage());
  EXPECT_TRUE(desk.running());
  EXPECT_FALSE(desk.not_live().empty());
  for (int frame = 0; desk.running() && frame < 10000; ++frame) {
    desk.update(stage(), false);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_NE(desk.answer(), nullptr) << desk.failure();
  EXPECT_EQ(desk.record["quantization"], desk.answer()->letter == 'a' ? "right" : "wrong");
  EXPECT_EQ(desk.completed(), 1u);
  ASSERT_NE(desk.next(), nullptr);
  EXPECT_EQ(desk.next()->name, "decoding");
  ASSERT_EQ(desk.open(desk.next()->name, stage()), "");
  EXPECT_EQ(desk.answer(), nullptr);
  EXPECT_EQ(desk.prediction, 0);
}

}  // namespace
}  // namespace hearth::testing
