// Which proposed tokens are accepted. A proposal is accepted if the model samples the very same
// token at its place. The kernel that samples a row decides that (SamplingResult::accepted), so
// that draft, verification and acceptance are submitted together; it is told which proposals may
// follow the row. What is left for the host is to go from row to row.
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

// The rows of a request with proposals: row 0 is that of the newest committed token, row 1 + i that
// of proposal i. For each row, the proposals that may follow it, as bits. `parents` as in
// TokenLedger::propose; empty for a chain of `proposed` tokens. REQUIRES: `followers` has an entry
// per row.
// `in_place`: only proposals that directly follow the committed tokens, one after the other. What a
// row off that chain attends to lies elsewhere in the cache, so the last bits of its logits differ
// from those of plain decoding.
void find_followers(std::uint32_t proposed, std::span<const std::uint32_t> parents, bool in_place,
                    std::span<std::uint32_t> followers);

struct Judgement {
  std::vector<std::uint32_t> path;  // indices of the accepted proposals, first to last
  std::uint32_t next_row = 0;       // the row of the token that follows them
};

// `accepted` has the proposal that each row accepts; a number that is none, such as
// params::kNoProposal, if it accepts none. Reuses the memory of `judgement`.
void follow_accepted(std::span<const std::uint32_t> accepted, Judgement& judgement);

}  // namespace hearth
