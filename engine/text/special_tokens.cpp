#include "engine/text/special_tokens.h"

#include <algorithm>

namespace hearth {
namespace {

bool is_control(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

bool is_special(const VocabularyToken& token) {
  return !token.text.empty() && (is_control(token.kind) || token.kind == TokenKind::kUserDefined);
}

constexpr std::string_view kSpace = " \t\n\r\v\f";

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      ids_(static_cast<std::size_t>(std::ranges::count_if(vocabulary.tokens, is_special))) {
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const VocabularyToken& token = vocabulary.tokens[id];
    if (!is_special(token) || !ids_.insert(token.text, id)) continue;
    lengths_[static_cast<unsigned char>(token.text[0])].push_back(token.text.size());
  }
  for (auto& lengths : lengths_) {
    std::ranges::sort(lengths, std::greater<>());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
}

SpecialTokens::Match SpecialTokens::match(std::string_view text,
                                          std::size_t max_control_bytes) const {
  for (const std::size_t length : lengths_[static_cast<unsigned char>(text[0])]) {
    if (length > text.size()) continue;
    const auto id = ids_.find(text.substr(0, length));
    if (id && (length <= max_control_bytes || !is_control(vocabulary_.tokens[*id].kind)))
      return {*id, length};
  }
  return {};
}

void SpecialTokens::split(std::string_view text, const Where& where,
                          const std::function<void(const Part&)>& part) const {
  std::size_t done = 0, at = 0;
  auto literal = where.literal.begin();
  while (at < text.size()) {
    // A control token ends before the next literal byte.
    while (literal != where.literal.end() && literal->end <= at) ++literal;
    std::size_t max_control_bytes = where.parse_control ? text.size() : 0;
    if (where.parse_control && literal != where.literal.end())
      max_control_bytes = literal->begin > at ? literal->begin - at : 0;
    const Match found = match(text.substr(at), max_control_bytes);
    if (found.bytes == 0) {
      ++at;
      continue;
    }
    const VocabularyToken& token = vocabulary_.tokens[found.id];
    std::string_view before = text.substr(done, at - done);
    if (token.takes_space_before) before = before.substr(0, before.find_last_not_of(kSpace) + 1);
    if (!before.empty()) part({before, std::nullopt});
    part({text.substr(at, found.bytes), found.id});
    at += found.bytes;
    if (token.takes_space_after) at = std::min(text.find_first_not_of(kSpace, at), text.size());
    done = at;
  }
  if (done < text.size()) part({text.substr(done), std::nullopt});
}

}  // namespace hearth
