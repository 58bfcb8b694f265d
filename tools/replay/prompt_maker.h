// Makes up prompts of a trace's lengths. A trace has no text, only how long prompts were and where
// they began alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "tools/replay/trace.h"

namespace hearth {

class Tokenizer;

// The ids that stand for text, so that no made-up prompt contains <s> or an end of turn. All of
// `vocabulary` without a tokenizer.
std::vector<TokenId> text_token_ids(const Tokenizer* tokenizer, uint32_t vocabulary);

class PromptMaker {
 public:
  // REQUIRES: there are ids.
  PromptMaker(std::vector<TokenId> ids, uint64_t seed);

  // The prompt of the trace's request `index`: always the same, and as far as its prefix ids are
  // those of another request, the same as the other's.
  std::vector<TokenId> make(const TraceRequest& request, size_t index) const;

 private:
  void append(std::vector<TokenId>& prompt, size_t tokens, uint64_t stream) const;

  std::vector<TokenId> ids_;
  uint64_t seed_;
};

}  // namespace hearth
