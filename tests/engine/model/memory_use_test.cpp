// The memory that `hearth info` predicts from a file's header is what a session then uses.
#include <gtest/gtest.h>

#include "engine/open_model_file.h"
#include "engine/session.h"
#include "runtime/memory.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

// Peak use of the device's own memory so far.
uint64_t peak_bytes(const MemoryUse& use) {
  return use.of(MemoryIntent::kWeights).peak_bytes + use.of(MemoryIntent::kKv).peak_bytes +
         use.of(MemoryIntent::kActivations).peak_bytes;
}

// Prompts longer than the smallest step, and single tokens.
void run_some(Session& session, uint32_t prompt_tokens) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 2; ++i) {
    GenerationRequest request{.max_tokens = 4, .ignore_end = true};
    for (uint32_t token = 0; token < prompt_tokens; ++token)
      request.prompt.push_back(1 + (token * 7 + i) % 200);
    requests.push_back(std::move(request));
  }
  for (GenerationRequest& request : requests) {
    auto stream = session.engine().submit(std::move(request));
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    while (stream->next()) {
    }
    EXPECT_EQ(stream->end().reason, FinishReason::kLength);
  }
}

TEST(MemoryUse, ASessionUsesWhatItsPlanSays) {
  struct Case {
    uint32_t context, sequences, step_tokens;
    KvFormat kv;
  };
  for (const Case& test : std::initializer_list<Case>{{256, 4, 64, KvFormat::kF16},
                                                      {512, 16, 512, KvFormat::kF16},
                                                      {512, 4, 0, KvFormat::kQ8_0}}) {
    auto file = open_model_file(HEARTH_SOURCE_DIR "/models/default/hearth-storyteller-Q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto session = Session::open(std::move(*file), {.context = test.context,
                                                    .max_sequences = test.sequences,
                                                    .max_step_tokens = test.step_tokens,
                                                    .kv = test.kv,
                                                    .validation = wanted_validation()});
    ASSERT_TRUE(session.ok()) << session.error().message;
    run_some(**session, 70);
    const auto planned = static_cast<double>((*session)->memory().total_bytes());
    const auto used = static_cast<double>(peak_bytes((*session)->device().memory().use()));
    EXPECT_NEAR(used / planned, 1.0, 0.03)
        << "context " << test.context << ", " << test.sequences << " sequences: planned "
        << format_bytes((*session)->memory().total_bytes());
    for (const std::string& message : (*session)->instance().take_validation_messages())
      ADD_FAILURE() << "validation: " << message;
  }
}

}  // namespace
}  // namespace hearth::testing
