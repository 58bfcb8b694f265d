// Which proposed tokens are accepted. A proposal is accepted if the model samples the very same
// token at its place. The host tells the sampling kernel which proposals may follow a row; the
// kernel says which of them is the token that it has sampled (SamplingResult::accepted); and the
// host goes from row to row.
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

// A row of a request with proposals. Row 0 belongs to the newest committed token, and row 1 + i to
// proposal i. Bit i stands for proposal i.
struct VerifiedRow {
  std::uint32_t path = 0;       // the proposals that lead to the row, its own included
  std::uint32_t followers = 0;  // those that may follow it
};

// Describes the rows of `rows.size() - 1` proposals. `parents` as in TokenLedger::propose; empty
// for a chain. `in_place`: a proposal may only follow the row right before its own. What a row of
// another branch attends to lies elsewhere in the cache, so the last bits of its logits differ from
// those of plain decoding.
void find_verified_rows(std::span<const std::uint32_t> parents, bool in_place,
                        std::span<VerifiedRow> rows);

struct Judgement {
  std::vector<std::uint32_t> path;  // indices of the accepted proposals, first to last
  std::uint32_t next_row = 0;       // the row of the token that follows them
};

// `accepted` has, for each row, 1 + the proposal that it accepts, or 0. Reuses the memory of
// `judgement`.
void follow_accepted(std::span<const std::uint32_t> accepted, Judgement& judgement);

}  // namespace hearth
