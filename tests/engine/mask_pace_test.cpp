// When steps wait for the masks of requests with a grammar.
#include "engine/mask_pace.h"

#include <gtest/gtest.h>

#include "engine/grammar_vocabulary.h"
#include "engine/step_loop.h"
#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"
#include "tests/support/engine_rooms.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

TEST(MaskPace, WaitsIfThatGivesMoreTokens) {
  MaskPace pace;
  EXPECT_FALSE(pace.waits(1, 1)) << "nothing is known yet";
  pace.ran_ahead(10e-3);
  EXPECT_TRUE(pace.waits(1, 64)) << "the host's time has to be tried";
  pace.waited(10e-3, 0.5e-3);
  EXPECT_TRUE(pace.waits(64, 64));
  // 64 / 10.5 ms against (64 - 3.5) / 10 ms, and against (64 - 3) / 10 ms.
  EXPECT_TRUE(pace.waits(7, 64));
  EXPECT_FALSE(pace.waits(6, 64));
  EXPECT_FALSE(pace.waits(0, 64));
}

TEST(MaskPace, TriesAgainAfterAWhile) {
  MaskPace pace;
  pace.waited(1e-3, 5e-3);
  EXPECT_FALSE(pace.waits(8, 16));
  int steps = 0;
  for (; !pace.waits(8, 16); ++steps) pace.ran_ahead(1e-3);
  EXPECT_GT(steps, 100);
  EXPECT_LT(steps, 1000);
}

// A request with a grammar used to take part in every second step if it was not alone.
TEST(MaskPace, RequestsWithAGrammarTakePartInEveryStep) {
  constexpr SchedulerLimits kPaceLimits{
      .max_sequences = 8, .max_step_tokens = 256, .context = 512, .pool_blocks = 400};
  const auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
  const auto tokenizer = Tokenizer::create(read_vocabulary(**file).value()).value();
  const auto trie = make_token_trie(*tokenizer);
  StandInExecutor executor({.limits = kPaceLimits, .vocabulary = tokenizer->size()});
  EngineRooms rooms(kPaceLimits);
  StepLoop steps(rooms.links(executor), true);
  RequestId next_id = 1;
  const auto accept = [&](GenerationRequest request) {
    request.prompt = {5};
    request.max_tokens = 40;
    request.ignore_end = true;
    rooms.publisher.posted(1);
    rooms.requests.accept(
        ActiveRequest::create(
            std::move(request),
            {.id = next_id++, .limits = kPaceLimits, .tokenizer = tokenizer.get(), .trie = trie})
            .value());
  };
  accept({.grammar = grammar::Grammar::compile_regex("[a-k]*").value()});
  accept({});
  accept({});
  // Every step takes 10 ms of the device, and the host no time.
  const auto finish = [&] {
    rooms.clock.advance(10e-3);
    EXPECT_TRUE(steps.finish().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  const auto members_of_next = [&]() -> uint64_t {
    while (steps.holds_back()) finish();
    if (steps.full()) finish();
    const uint64_t before = executor.rows;
    EXPECT_TRUE(steps.resume_constrained().ok());
    EXPECT_TRUE(*steps.begin());
    return executor.rows - before;
  };
  EXPECT_EQ(members_of_next(), 3u);
  EXPECT_EQ(members_of_next(), 2u) << "how long a step takes is not known yet";
  uint64_t members = 0;
  for (int i = 0; i < 10; ++i) members += members_of_next();
  EXPECT_GE(members, 29u);
  while (!steps.idle()) finish();
  rooms.requests.end_all(FinishReason::kCancelled, "");
}

}  // namespace
}  // namespace hearth::testing
