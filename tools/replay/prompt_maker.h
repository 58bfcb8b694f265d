// Makes up prompts for a trace, which has no text: only lengths, and which prefixes are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "tools/replay/trace.h"

namespace hearth {

class Tokenizer;

// The ids of ordinary text, so that no prompt contains <s> or an end of turn by accident. Without a
// tokenizer, all ids below `vocabulary`.
std::vector<TokenId> text_token_ids(const Tokenizer* tokenizer, uint32_t vocabulary);

class PromptMaker {
 public:
  // REQUIRES: `ids` is not empty.
  PromptMaker(std::vector<TokenId> ids, uint64_t seed);

  // The prompt of request `index` of the trace. It is always the same, and it agrees with another
  // request's prompt as far as their prefix ids agree.
  std::vector<TokenId> make(const TraceRequest& request, size_t index) const;

 private:
  void append(std::vector<TokenId>& prompt, size_t tokens, uint64_t stream) const;

  std::vector<TokenId> ids_;
  uint64_t seed_;
};

}  // namespace hearth
