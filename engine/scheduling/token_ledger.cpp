#include "engine/scheduling/token_ledger.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "engine/scheduling/unread_token.h"

namespace hearth {

TokenLedger::TokenLedger(std::span<const TokenId> prompt, std::uint32_t max_tokens,
                         const BlockHash& root)
    : root_(root),
      prompt_tokens_(static_cast<std::uint32_t>(prompt.size())),
      max_tokens_(max_tokens),
      committed_(prompt_tokens_) {
  tokens_.reserve(max_tokens);
  tokens_.assign(prompt.begin(), prompt.end());
  hashes_.reserve(max_tokens / kTokensPerBlock);
  parents_.reserve(kMaxProposed);
  extend_hashes();
}

std::uint32_t TokenLedger::propose(std::span<const TokenId> tokens,
                                   std::span<const std::uint32_t> parents) {
  assert(!pending() && !awaiting_);
  assert(parents.empty() || parents.size() == tokens.size());
  drop_proposals();
  // If all are accepted, the step's own token follows them.
  const std::uint32_t room = max_tokens_ - committed_ - (full() ? 0 : 1);
  const std::uint32_t count =
      std::min({static_cast<std::uint32_t>(tokens.size()), room, kMaxProposed});
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.begin() + count);
  if (!parents.empty()) {
    parents_.assign(parents.begin(), parents.begin() + count);
    for ([[maybe_unused]] std::uint32_t i = 0; i < count; ++i)
      assert(parents_[i] == kNoParent || parents_[i] < i);
  }
  proposed_ = count;
  return count;
}

void TokenLedger::learn_proposals(std::span<const TokenId> tokens) {
  const std::uint32_t count = std::min(static_cast<std::uint32_t>(tokens.size()), proposed_);
  for (std::uint32_t i = 0; i < count; ++i) {
    TokenId& token = tokens_[committed_ + i];
    assert(is_unread(token) || token == tokens[i]);
    token = tokens[i];
  }
  if (!awaiting_) truncate_proposals(committed_ + count);
}

void TokenLedger::propose_candidates(std::span<const TokenId> candidates) {
  assert(!pending());
  drop_proposals();
  computed_ = std::min(computed_, committed_);
  awaiting_ = false;
  [[maybe_unused]] const std::uint32_t count = propose(candidates);
  assert(count > 0);
}

void TokenLedger::take_candidate(std::uint32_t candidate) {
  assert(awaiting_ && parents_.empty() && candidate < proposed_);
  const bool computed = computed_ > committed_;
  const TokenId taken = tokens_[committed_ + candidate];
  drop_proposals();
  tokens_.push_back(taken);
  ++committed_;
  if (computed) computed_ = committed_;
  extend_hashes();
}

void TokenLedger::commit(std::uint32_t count) {
  assert(parents_.empty() && count <= proposed_);
  committed_ += count;
  proposed_ -= count;
  extend_hashes();
}

void TokenLedger::commit_path(std::span<const std::uint32_t> path) {
  if (parents_.empty()) {
    assert(path.empty() || path.back() == path.size() - 1);
    commit(static_cast<std::uint32_t>(path.size()));
    truncate(committed_);
    return;
  }
  std::array<TokenId, kMaxProposed> accepted{};
  std::uint32_t in_place = 0;
  for (std::uint32_t i = 0; i < path.size(); ++i) {
    assert(path[i] < proposed_ && parents_[path[i]] == (i == 0 ? kNoParent : path[i - 1]));
    accepted[i] = tokens_[committed_ + path[i]];
    if (path[i] == i) ++in_place;
  }
  const std::uint32_t before = committed_;
  drop_proposals();
  tokens_.insert(tokens_.end(), accepted.begin(), accepted.begin() + path.size());
  committed_ += static_cast<std::uint32_t>(path.size());
  computed_ = std::min(computed_, before + in_place);
  extend_hashes();
}

void TokenLedger::truncate(std::uint32_t count) {
  assert(count >= prompt_tokens_ && count >= 1 && !pending());
  if (count >= length()) return;
  if (count < committed_) {
    assert(!awaiting_);
    drop_proposals();
    tokens_.resize(count);
    hashes_.resize(count / kTokensPerBlock);
    committed_ = count;
    computed_ = std::min(computed_, count - 1);
    return;
  }
  truncate_proposals(count);
  computed_ = std::min(computed_, count);
}

void TokenLedger::truncate_proposals(std::uint32_t count) {
  if (count >= length()) return;
  tokens_.resize(count);
  proposed_ = count - committed_;
  if (!parents_.empty()) parents_.resize(proposed_);
}

void TokenLedger::append(TokenId token) {
  assert(pending() || (awaiting_ && proposed_ == 0 && !full()));
  if (!pending()) {
    ++committed_;
    awaiting_ = false;
  }
  tokens_.push_back(token);
  extend_hashes();
}

void TokenLedger::sample(bool with_host) {
  assert(computed_ == length() && !full());
  assert(with_host || proposed_ == 0);
  if (with_host)
    awaiting_ = true;
  else
    ++committed_;
}

void TokenLedger::extend_hashes() {
  while ((hashes_.size() + 1) * kTokensPerBlock <= known()) {
    const TokenId* first = tokens_.data() + hashes_.size() * kTokensPerBlock;
    hashes_.push_back(
        chain_hash(hashes_.empty() ? root_ : hashes_.back(),
                   std::span<const TokenId, kTokensPerBlock>(first, kTokensPerBlock)));
  }
}

void TokenLedger::drop_proposals() {
  tokens_.resize(tokens_.size() - proposed_);
  parents_.clear();
  proposed_ = 0;
}

}  // namespace hearth
