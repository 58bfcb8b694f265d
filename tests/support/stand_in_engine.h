// An engine on the stand-in executor, and helpers for its streams.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/support/stand_in_executor.h"

namespace hearth::testing {

class StandInEngine {
 public:
  explicit StandInEngine(StandInOptions options, Policy policy = {},
                         const Tokenizer* tokenizer = nullptr, bool start_paused = false)
      : options_(std::move(options)),
        executor_(options_),
        draft_(draft_options(options_), &executor_),
        engine_(std::make_unique<Engine>(executor_, tokenizer,
                                         EngineOptions{.limits = options_.limits,
                                                       .policy = policy,
                                                       .vocabulary = options_.vocabulary,
                                                       .recorded_steps = 256,
                                                       .start_paused = start_paused,
                                                       .speculation = options_.speculation,
                                                       .draft_executor = draft_executor(),
                                                       .drafter = drafter_options(options_),
                                                       .check_integrity = true})) {}

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  StandInExecutor& executor() { return executor_; }
  StandInExecutor& draft() { return draft_; }
  const StandInOptions& options() const { return options_; }
  // Destroys the engine and keeps the executor.
  void close() { engine_.reset(); }

  std::vector<TokenId> alone(const GenerationRequest& request) const {
    return generate_alone(options_, request);
  }

 private:
  StepExecutor* draft_executor() { return options_.draft_blocks > 0 ? &draft_ : nullptr; }
  static StandInOptions draft_options(StandInOptions options) {
    options.limits.pool_blocks = options.draft_blocks;
    if (options.draft_vocabulary != 0) options.vocabulary = options.draft_vocabulary;
    return options;
  }
  static DrafterOptions drafter_options(const StandInOptions& options) {
    return {.slots = options.limits.max_sequences,
            .step_rows = options.limits.max_step_tokens,
            .context = options.limits.context,
            .blocks = options.draft_blocks,
            .vocabulary = options.vocabulary,
            .draft_vocabulary =
                options.draft_vocabulary != 0 ? options.draft_vocabulary : options.vocabulary,
            .first_place = options.limits.max_sequences,
            .shares_places = true};
  }

  StandInOptions options_;
  StandInExecutor executor_, draft_;
  std::unique_ptr<Engine> engine_;
};

inline void drop(TokenStream) {}

// Reads everything up to the end.
inline std::vector<TokenId> read_ids(TokenStream& stream) {
  std::vector<TokenId> ids;
  while (const auto token = stream.next()) ids.push_back(token->id);
  return ids;
}

inline std::vector<TokenId> read_ids(TokenStream&& stream) { return read_ids(stream); }

inline std::string read_text(TokenStream& stream) {
  std::string text;
  while (const auto token = stream.next()) text += token->text;
  return text + stream.end().text;
}

// `tokens` ids that depend on `seed` from index `shared` on.
inline std::vector<TokenId> made_up_prompt(uint32_t tokens, uint32_t seed, uint32_t shared = 0) {
  std::vector<TokenId> prompt(tokens);
  for (uint32_t i = 0; i < tokens; ++i)
    prompt[i] = static_cast<TokenId>(StandInSampler::mix(i < shared ? 1 : seed + 2, i) % 4999);
  return prompt;
}

// Requests of every kind: greedy, with a seed, with penalties, with biases; some share a prefix. At
// most 110 tokens long.
inline GenerationRequest mixed_request(uint32_t number) {
  const auto pick = [&](uint32_t what, uint32_t least, uint32_t most) {
    return least +
           static_cast<uint32_t>(StandInSampler::mix(number * 16 + what, 77) % (most - least + 1));
  };
  GenerationRequest request;
  request.prompt = made_up_prompt(pick(0, 1, 70), number, number % 3 == 0 ? 40 : 0);
  request.max_tokens = pick(1, 1, 40);
  request.priority = static_cast<int32_t>(pick(2, 0, 2));
  request.sampling.temperature = number % 2 == 0 ? 0.0f : 1.0f;
  request.sampling.seed = number * 1000;
  if (number % 5 == 1) request.sampling.repetition_penalty = 1.2f;
  if (number % 7 == 2) request.sampling.presence_penalty = 0.5f;
  if (number % 4 == 3) request.biases = {{.token = number, .bias = 2.0f}, {.token = 8, .bias = -1}};
  return request;
}

// Waits until another thread makes the condition true; false if that takes too long.
template <class Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace hearth::testing
