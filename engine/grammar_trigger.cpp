#include "engine/grammar_trigger.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/text/tokenizer.h"

namespace hearth {
namespace {

std::string_view without_leading_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace

GrammarTrigger::GrammarTrigger(const Options& options, const grammar::TokenTrie& trie,
                               const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer), options_(std::make_shared<const Options>(options)) {
  if (!options.reasoning_close.empty())
    place_ = options.in_reasoning ? Place::kReasoning : Place::kStart;
  const std::string_view wanted = options_->text;
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
  if (place_ == Place::kOver) return std::nullopt;
  seen_ += tokenizer_->piece(token, true);
  leave_reasoning();
  if (place_ == Place::kStart) return std::nullopt;
  if (place_ == Place::kText && options_->opens_text) return find_opening();
  const std::string& wanted =
      place_ == Place::kReasoning ? options_->reasoning_close : options_->text;
  if (const size_t place = seen_.find(wanted); place_ == Place::kText && place != seen_.npos)
    return seen_.substr(place + wanted.size());
  const size_t keep = wanted.size() - 1;
  if (seen_.size() > keep) seen_.erase(0, seen_.size() - keep);
  return std::nullopt;
}

// The text seen, from the string on; nothing as long as it is not complete.
std::optional<std::string> GrammarTrigger::find_opening() {
  std::string_view begun = without_leading_space(seen_);
  const std::string_view tag = options_->tag;
  if (!tag.empty() && begun.starts_with(tag))
    begun = without_leading_space(begun.substr(tag.size()));
  else if (tag.starts_with(begun))
    return std::nullopt;
  if (begun.starts_with(options_->text)) return std::string(begun);
  if (!options_->text.starts_with(begun)) place_ = Place::kOver;
  return std::nullopt;
}

// Moves on from the start and from reasoning, as far as the text seen says so.
void GrammarTrigger::leave_reasoning() {
  if (place_ == Place::kStart) {
    const std::string_view begun = without_leading_space(seen_);
    const std::string& open = options_->reasoning_open;
    if (begun.starts_with(open)) {
      place_ = Place::kReasoning;
      seen_ = std::string(begun.substr(open.size()));
    } else if (!std::string_view(open).starts_with(begun)) {
      place_ = Place::kText;
    }
  }
  if (place_ != Place::kReasoning) return;
  const size_t end = seen_.find(options_->reasoning_close);
  if (end == seen_.npos) return;
  place_ = Place::kText;
  seen_.erase(0, end + options_->reasoning_close.size());
}

void GrammarTrigger::mask(const grammar::Matcher& grammar, grammar::MaskSpan bits) const {
  if (place_ == Place::kReasoning || place_ == Place::kOver) return;
  const std::string_view wanted = options_->text;
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
