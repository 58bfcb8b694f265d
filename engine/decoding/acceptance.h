// Judges proposed tokens by what the model sampled after each of them. A proposal is accepted if
// the model sampled the very same token at its place.
//
// For proposals that were not drawn at random themselves, this is rejection sampling: a proposed
// token is accepted with exactly the probability that the model gives it, and otherwise what was
// sampled is distributed as the model wants, given that it is another token. A draft model's own
// draws have the model's noise (docs/sampling.md), and are accepted nearly as often as by rejection
// sampling. What is generated is the model's own draw in any case, so speculation changes neither
// greedy output nor the distribution of sampled output. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

struct Judgement {
  std::vector<std::uint32_t> path;  // indices of the accepted proposals, first to last
  // Row of the token that follows them: 0 after the newest committed token, 1 + i after proposal i.
  std::uint32_t next_row = 0;
};

// `sampled` has the token of each row: after the newest committed token, then after each proposal.
// `parents` as in TokenLedger::propose; empty for a chain. Reuses the memory of `judgement`.
// `in_place`: accepts only proposals that directly follow the committed tokens, one after the
// other. What a row off that chain attends to lies elsewhere in the cache, so the last bits of its
// logits differ from those of plain decoding.
void judge_proposals(std::span<const std::uint32_t> proposed,
                     std::span<const std::uint32_t> parents, std::span<const std::uint32_t> sampled,
                     Judgement& judgement, bool in_place = false);

}  // namespace hearth
