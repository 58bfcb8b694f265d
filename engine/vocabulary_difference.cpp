#include "engine/vocabulary_difference.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {

std::optional<std::string> vocabulary_difference(const Vocabulary& there, const Vocabulary& here) {
  if (there.tokens.empty() != here.tokens.empty())
    return there.tokens.empty() ? "it has no vocabulary" : "the other model has no vocabulary";
  const size_t both = std::min(there.tokens.size(), here.tokens.size());
  for (size_t i = 0; i < both; ++i)
    if (there.tokens[i].text != here.tokens[i].text)
      return fmt::format("its token {} is {}, not {}", i, in_quotes(there.tokens[i].text),
                         in_quotes(here.tokens[i].text));
  if (there.tokens.size() != here.tokens.size())
    return fmt::format("its vocabulary has {} tokens, not {}", there.tokens.size(),
                       here.tokens.size());
  if (there.kind != here.kind) return "its vocabulary is of another kind";
  return std::nullopt;
}

}  // namespace hearth
