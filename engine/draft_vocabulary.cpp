#include "engine/draft_vocabulary.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {

std::optional<std::string> vocabulary_difference(const Vocabulary& draft,
                                                 const Vocabulary& target) {
  const size_t both = std::min(draft.tokens.size(), target.tokens.size());
  for (size_t i = 0; i < both; ++i)
    if (draft.tokens[i].text != target.tokens[i].text)
      return fmt::format("token {} is {} there and {} here", i, in_quotes(draft.tokens[i].text),
                         in_quotes(target.tokens[i].text));
  if (draft.tokens.size() != target.tokens.size())
    return fmt::format("its vocabulary has {} tokens, not {}", draft.tokens.size(),
                       target.tokens.size());
  if (draft.kind != target.kind) return "its vocabulary is of another kind";
  return std::nullopt;
}

}  // namespace hearth
