// A kernel that waits in vain (injected): the engine falls back to barriers, runs the steps in
// flight again, and generates the same tokens.
#include "runtime/chain_guard.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "engine/model/amateur_executor.h"
#include "runtime/faults.h"
#include "runtime/log.h"
#include "tests/support/chained_device.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kSlots = 4, kProposed = 8;
constexpr StepRunnerOptions kGuardOptions{.limits = {.rows = 64,
                                                     .sequences = kSlots,
                                                     .logit_rows = kSlots + kProposed,
                                                     .context = 128,
                                                     .deterministic = true},
                                          .slots = kSlots,
                                          .drafted_places = drafted_places(kSlots),
                                          .kv_blocks = 8,
                                          .swap_blocks = 8};

class ChainGuardTest : public GpuTest {
 protected:
  struct Run {
    std::vector<std::vector<TokenId>> ids;
    std::vector<std::string> lines;  // of the log
    bool struck = false, usable = false;
    uint64_t accepted = 0;  // drafts
  };

  // Penalties count in a slot's history, and mirostat's state is kept in it: both would be wrong if
  // a step counted twice. Without either, drafts are verified before the host has read them.
  static GenerationRequest request(const TinyModel& tiny, uint32_t number, bool drafts) {
    GenerationRequest request{.prompt = tiny.prompt(10 + 9 * number, number), .max_tokens = 12};
    request.sampling.seed = number;
    if (drafts) return request;
    request.sampling.frequency_penalty = 0.5f;
    if (number == 2) request.sampling.mirostat = 2;
    return request;
  }

  static void generate(Engine& engine, const TinyModel& tiny, Run& run, bool drafts) {
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 5; ++i) {
      auto stream = engine.submit(request(tiny, i, drafts));
      ASSERT_OK(stream);
      streams.push_back(std::move(*stream));
    }
    engine.resume();
    for (TokenStream& stream : streams) {
      run.ids.emplace_back();
      while (const auto token = stream.next()) run.ids.back().push_back(token->id);
      EXPECT_EQ(stream.end().reason, FinishReason::kLength) << stream.end().message;
    }
  }

  // Generates with the n-th recorded wait in vain; 0: none. With an amateur, because kernels for
  // CPUs wait for each other only where logits are mixed: the expert's steps read the amateur's
  // logits, and the amateur's steps the expert's tokens. In a small pool, so that requests are
  // swapped. With `drafts`, the model also drafts for itself.
  static Run run(int n, bool drafts) {
    Run run;
    auto chained = ChainedDevice::open();
    EXPECT_TRUE(chained.ok());
    const ScopedLogSink sink([&](std::string_view line) { run.lines.emplace_back(line); });
    auto tiny = TinyModel::open(*chained->device, *chained->pipelines, kGuardOptions);
    EXPECT_TRUE(tiny.ok());
    auto amateur = StepRunner::create(*chained->device, *chained->pipelines, *tiny->model,
                                      amateur_options(*tiny->runner));
    EXPECT_TRUE(amateur.ok());
    auto draft = StepRunner::create(*chained->device, *chained->pipelines, *tiny->model,
                                    amateur_options(*tiny->runner));
    EXPECT_TRUE(draft.ok());
    chained->device->faults().chain.arm(n);
    AmateurExecutor executor(*tiny->runner, **amateur);
    {
      const uint32_t vocabulary = tiny->model->config().vocabulary;
      SpeculationOptions speculation;
      if (drafts) speculation.method = SpeculationMethod::kDraft;
      Engine engine(executor, nullptr,
                    {.limits = {.max_sequences = kSlots,
                                .max_step_tokens = 64,
                                .context = 128,
                                .pool_blocks = 8,
                                .swap_blocks = 8,
                                .max_proposed = drafts ? kProposed : 0},
                     .policy = {.preemption = Preemption::kSwap},
                     .vocabulary = vocabulary,
                     .start_paused = true,
                     .speculation = speculation,
                     .draft_executor = drafts ? draft->get() : nullptr,
                     .drafter = {.slots = kSlots,
                                 .step_rows = 64,
                                 .context = 128,
                                 .blocks = 8,
                                 .vocabulary = vocabulary,
                                 .draft_vocabulary = vocabulary,
                                 .first_place = kSlots,
                                 .shares_places = true},
                     .contrast = ContrastOptions{.alpha = 0.1f, .beta = 0.8f},
                     .check_integrity = true});
      generate(engine, *tiny, run, drafts);
      run.accepted = engine.metrics().accepted_tokens.value();
    }
    run.struck = !chained->device->faults().chain.pending();
    run.usable = chained->device->chain().usable();
    return run;
  }
};

// With drafts, the steps in flight include those of the draft model, which have to run again before
// the step that verifies them.
TEST_F(ChainGuardTest, TokensAreTheSameWhicheverWaitIsInVain) {
  for (const bool drafts : {false, true}) {
    SCOPED_TRACE(drafts);
    const Run right = run(0, drafts);
    EXPECT_TRUE(right.usable);
    EXPECT_THAT(right.lines, IsEmpty());
    EXPECT_EQ(right.accepted > 0, drafts);
    int failures = 0;
    for (const int n : {1, 2, 3, 4, 5, 9}) {
      SCOPED_TRACE(n);
      const Run failed = run(n, drafts);
      EXPECT_EQ(failed.ids, right.ids);
      EXPECT_EQ(failed.accepted, right.accepted);
      if (!failed.struck) break;    // there are not as many waits
      if (failed.usable) continue;  // in a recording that no step has used
      ++failures;
      EXPECT_THAT(failed.lines, ElementsAre(HasSubstr("barriers"))) << "once";
    }
    EXPECT_GE(failures, 2);
  }
}

}  // namespace
}  // namespace hearth::testing
