// The tokens of a sequence, as a ledger. Each token is in one of two states:
//   committed  final: the prompt, what was sampled, and proposals that were accepted
//   proposed   a guess that a step verifies: a draft, a beam's candidate, a forced token
// Proposed tokens come after the committed ones. They form a chain or, if they have parents, a
// tree; or they are candidates for the next token, of which none follows another. `computed` counts
// the leading tokens whose keys and values are in the cache once all planned steps have run.
//
// Two ways to go from one step to the next:
//   plain          The step's token counts as committed at once although the host does not know it
//                  yet: it is `pending`, and the next step reads it on the device.
//   with the host  The step's outcome must be known before the sequence is planned again: it has
//                  proposals to be judged, or a grammar to be asked. It is `awaiting()` until
//                  append() or propose_candidates().
//
// A proposed chain may consist of unread tokens (unread_token.h): a step can verify them before the
// host knows their ids. learn_proposals() replaces them, at the latest when they are accepted.
//
// Plain data of the scheduler. Nothing here allocates after the constructor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/prefix_cache.h"

namespace hearth {

class TokenLedger {
 public:
  TokenLedger() = default;
  // `max_tokens` counts the prompt and everything generated. `root` is what the hash of the first
  // block is chained to.
  TokenLedger(std::span<const TokenId> prompt, std::uint32_t max_tokens, const BlockHash& root);

  const BlockHash& root() const { return root_; }
  std::uint32_t prompt_tokens() const { return prompt_tokens_; }
  std::uint32_t max_tokens() const { return max_tokens_; }
  std::uint32_t committed() const { return committed_; }  // a pending token included
  std::uint32_t proposed() const { return proposed_; }
  std::uint32_t length() const { return committed_ + proposed_; }
  std::uint32_t computed() const { return computed_; }
  // Tokens that are not in the cache yet.
  std::uint32_t work() const { return length() - computed_; }
  // The tokens whose ids the host knows: committed ones, then proposed ones.
  std::span<const TokenId> tokens() const { return tokens_; }
  // The committed tokens whose ids the host knows.
  std::uint32_t known() const { return static_cast<std::uint32_t>(tokens_.size()) - proposed_; }
  // Whether the newest committed token is sampled by a step in flight.
  bool pending() const { return known() < committed_; }
  // Whether a planned step must be judged by the host before the sequence continues.
  bool awaiting() const { return awaiting_; }
  // Nothing more can be generated.
  bool full() const { return committed_ == max_tokens_; }
  // Hashes of the full blocks of known committed tokens.
  std::span<const BlockHash> hashes() const { return hashes_; }
  // The parent of each proposed token: an index among them, or kNoParent for those that follow the
  // newest committed token. Empty if they form a chain.
  std::span<const std::uint32_t> parents() const { return parents_; }

  // Adds proposed tokens, as many as there is room for, and returns how many. They follow the
  // committed tokens and replace earlier proposals. `parents` is empty or has as many entries as
  // `tokens`, and a parent comes before its children. REQUIRES: neither pending() nor awaiting().
  std::uint32_t propose(std::span<const TokenId> tokens,
                        std::span<const std::uint32_t> parents = {});
  // The ids of the first proposals, as many as are known. Proposals that a planned step has dropped
  // are ignored; those beyond `tokens` are dropped unless a planned step verifies them.
  void learn_proposals(std::span<const TokenId> tokens);
  // Proposes candidates for the next token, in place of earlier proposals. What was computed of the
  // committed tokens stays. REQUIRES: not pending(); there is a candidate, and room for one.
  void propose_candidates(std::span<const TokenId> candidates);
  // Makes a candidate final, and drops the others. It counts as computed if they were.
  // REQUIRES: awaiting(), and the proposals are candidates.
  void take_candidate(std::uint32_t candidate);
  // Makes the first `count` tokens of a proposed chain final. The others stay proposed.
  void commit(std::uint32_t count);
  // Makes a path of a proposed tree final, from the first level down, and drops all other
  // proposals. Tokens of the path that are not where they belong in the cache are computed again.
  void commit_path(std::span<const std::uint32_t> path);
  // Keeps the first `count` tokens and drops the others, committed ones included.
  // REQUIRES: 1 <= count, not below the prompt, and not pending().
  void truncate(std::uint32_t count);
  // Adds a sampled token: the pending one, or the outcome that the sequence is awaiting.
  // REQUIRES: pending(), or awaiting() without proposals.
  void append(TokenId token);

  // For the scheduler: a planned step computes the next `tokens`, or what is in the cache changed.
  void compute(std::uint32_t tokens) { computed_ += tokens; }
  void set_computed(std::uint32_t tokens) { computed_ = tokens; }
  // For the scheduler: drops the proposals from token `count` on, which do not fit into the step.
  void truncate_proposals(std::uint32_t count);
  // For the scheduler: the planned step samples. With the host, the sequence is awaiting() from now
  // on; otherwise it has a pending token. REQUIRES: computed() == length().
  void sample(bool with_host);

 private:
  void extend_hashes();
  void drop_proposals();

  std::vector<TokenId> tokens_;
  std::vector<BlockHash> hashes_;
  std::vector<std::uint32_t> parents_;
  BlockHash root_;
  std::uint32_t prompt_tokens_ = 0, max_tokens_ = 0;
  std::uint32_t committed_ = 0, proposed_ = 0, computed_ = 0;
  bool awaiting_ = false;
};

}  // namespace hearth
