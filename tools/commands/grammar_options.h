// The options of commands that keep what they generate inside a grammar.
#pragma once

#include <memory>
#include <string>

#include "engine/grammar/grammar.h"
#include "runtime/result.h"
#include "tools/options/options.h"

namespace hearth {

struct GrammarOptionsGroup {
  std::string schema, grammar, regex;
  uint32_t whitespace = 0;

  // --json-schema, --grammar, --regex, --json-whitespace.
  void declare(Options& options);
  bool given() const;
  // Null if none is given. An error names the file and, for a schema, the keyword and its path.
  Result<std::shared_ptr<const grammar::Grammar>> compile() const;

 private:
  const Option* regex_option_ = nullptr;
};

}  // namespace hearth
