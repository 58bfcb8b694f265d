// The options of contrastive search, and of guidance with a negative prompt.
#pragma once

#include "tools/decoding_choices.h"
#include "tools/options/options.h"

namespace hearth {

class DecodingOptionsGroup {
 public:
  // --penalty-alpha, --guidance, --negative-prompt. REQUIRES: all options that do not go together
  // with them were declared before.
  void declare(Options& options);

  const DecodingChoices& choices() const { return choices_; }

 private:
  DecodingChoices choices_;
};

}  // namespace hearth
