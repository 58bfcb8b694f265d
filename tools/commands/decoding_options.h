// The options of contrastive search, and of guidance with a negative prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/decoding_choices.h"
#include "tools/options/options.h"

namespace hearth {

class DecodingOptionsGroup {
 public:
  // --penalty-alpha, --guidance, --negative-prompt. REQUIRES: all options that do not go together
  // with them were declared before, except --beams, which excludes them itself.
  void declare(Options& options);
  // What is wrong with them if --top-k is this; empty if nothing is.
  std::string problem(std::optional<uint32_t> top_k) const;

  const DecodingChoices& choices() const { return choices_; }

 private:
  DecodingChoices choices_;
};

}  // namespace hearth
