#include "tools/replay/prompt_maker.h"

#include <cassert>
#include <numeric>
#include <utility>

#include "engine/text/tokenizer.h"
#include "tools/replay/seeded_random.h"

namespace hearth {
namespace {

// Random number streams: even ones for shared prefixes, odd ones for the rest of each prompt.
uint64_t shared_stream(uint64_t prefix_id) { return prefix_id * 2; }
uint64_t own_stream(size_t index) { return uint64_t{index} * 2 + 1; }

}  // namespace

std::vector<TokenId> text_token_ids(const Tokenizer* tokenizer, uint32_t vocabulary) {
  std::vector<TokenId> ids;
  if (tokenizer != nullptr) {
    const std::vector<VocabularyToken>& tokens = tokenizer->vocabulary().tokens;
    for (TokenId id = 0; id < vocabulary && id < tokens.size(); ++id)
      if (tokens[id].kind == TokenKind::kNormal && !tokenizer->ends_generation(id))
        ids.push_back(id);
  }
  if (ids.empty()) {
    ids.resize(vocabulary);
    std::iota(ids.begin(), ids.end(), TokenId{0});
  }
  return ids;
}

PromptMaker::PromptMaker(std::vector<TokenId> ids, uint64_t seed)
    : ids_(std::move(ids)), seed_(seed) {
  assert(!ids_.empty());
}

std::vector<TokenId> PromptMaker::make(const TraceRequest& request, size_t index) const {
  std::vector<TokenId> prompt;
  prompt.reserve(request.prompt_tokens);
  for (size_t section = 0; section < request.prefix_ids.size(); ++section)
    append(prompt, request.section_begin(section + 1) - request.section_begin(section),
           shared_stream(request.prefix_ids[section]));
  append(prompt, request.prompt_tokens - prompt.size(), own_stream(index));
  return prompt;
}

void PromptMaker::append(std::vector<TokenId>& prompt, size_t tokens, uint64_t stream) const {
  SeededRandom random(seed_, stream);
  const auto last = static_cast<uint32_t>(ids_.size() - 1);
  for (size_t i = 0; i < tokens; ++i) prompt.push_back(ids_[random.between(0, last)]);
}

}  // namespace hearth
