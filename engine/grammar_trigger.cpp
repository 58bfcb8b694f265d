#include "engine/grammar_trigger.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/text/tokenizer.h"

namespace hearth {

GrammarTrigger::GrammarTrigger(std::string text, const grammar::TokenTrie& trie,
                               const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer), text_(std::make_shared<const std::string>(std::move(text))) {
  const std::string_view wanted = *text_;
  auto crossings = std::make_shared<std::vector<Crossing>>();
  for (TokenId id = 0; id < trie.vocabulary_size(); ++id) {
    const std::string_view bytes = trie.bytes(id);
    for (size_t matched = 1; matched < std::min(wanted.size(), bytes.size()); ++matched)
      if (bytes.starts_with(wanted.substr(wanted.size() - matched)))
        crossings->push_back({id, matched});
    const size_t whole = bytes.find(wanted);
    if (whole != bytes.npos && whole + wanted.size() < bytes.size())
      crossings->push_back({id, wanted.size()});
  }
  crossings_ = std::move(crossings);
}

std::optional<std::string> GrammarTrigger::push(TokenId token) {
  seen_ += tokenizer_->piece(token, true);
  if (const size_t place = seen_.find(*text_); place != seen_.npos)
    return seen_.substr(place + text_->size());
  const size_t keep = text_->size() - 1;
  if (seen_.size() > keep) seen_.erase(0, seen_.size() - keep);
  return std::nullopt;
}

void GrammarTrigger::mask(const grammar::Matcher& grammar, grammar::MaskSpan bits) const {
  const std::string_view wanted = *text_;
  for (const Crossing& crossing : *crossings_) {
    if (!seen_.ends_with(wanted.substr(0, wanted.size() - crossing.matched))) continue;
    if (crossing.token / 32 >= bits.size()) continue;
    GrammarTrigger after = *this;
    const std::optional<std::string> rest = after.push(crossing.token);
    grammar::Matcher state = grammar;
    if (rest && !rest->empty() && !state.accept_bytes(*rest))
      grammar::clear_bit(bits, crossing.token);
  }
}

}  // namespace hearth
