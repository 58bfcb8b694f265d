// The bodies of requests: made-up prompts of given lengths, as token ids or as words. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/load/load_target.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/trace.h"

namespace hearth {

// Common words, separated by spaces.
std::string words_text(size_t words);

class LoadPrompts {
 public:
  // Equal seeds give equal prompts. REQUIRES: `target` is the result of probe_target() and outlives
  // this.
  LoadPrompts(const LoadedServer& target, uint64_t seed);

  // The body of request `index` of a trace. Prompts that share a prefix in the trace share it here.
  std::string body(const TraceRequest& request, size_t index) const;

 private:
  std::string text(const TraceRequest& request, size_t index) const;

  const LoadedServer& target_;
  PromptMaker maker_;  // of ids, or of indices of words
};

}  // namespace hearth
