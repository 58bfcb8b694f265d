// The options of the less common samplers, named as llama.cpp names them. Shown by --help-all.
#pragma once

#include <optional>
#include <string>

#include "tools/options/options.h"
#include "tools/sampler_choices.h"

namespace hearth {

class SamplerOptionsGroup {
 public:
  void declare(Options& options);
  // What was given.
  SamplerChoices choices() const;

 private:
  SamplerChoices choices_;
  std::optional<std::string> samplers_;
};

}  // namespace hearth
