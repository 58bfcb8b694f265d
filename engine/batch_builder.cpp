#include "engine/batch_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <span>
#include <utility>

#include "engine/decoding/acceptance.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduling/unread_token.h"

namespace hearth {
namespace {

// The row of another model that a row is mixed with is the one of the same number.
void sample_after(StepBatch& batch, uint32_t row, params::SamplingRow how) {
  if (is_mixed(how) && (how.other_row & params::kOtherModel) != 0)
    how.other_row = params::kOtherModel | static_cast<uint32_t>(batch.logit_rows.size());
  batch.sample(row, how);
}

// Empty for a chain.
std::span<const uint32_t> parents_of(const BatchPlan& plan, const BatchMember& member) {
  if (!member.tree) return {};
  return std::span<const uint32_t>(plan.parents).subspan(member.first_parent, member.proposed);
}

static_assert(kMaxProposed == params::kMaxProposals && kMaxProposed == kMaxTreeRows);

}  // namespace

BatchBuilder::BatchBuilder(const SchedulerLimits& limits, bool in_place) : in_place_(in_place) {
  batch_.reserve(limits.max_step_tokens, limits.max_sequences, reserved_block_ids(limits));
}

const StepBatch& BatchBuilder::build(const BatchPlan& plan, RequestTable& requests,
                                     std::vector<SampledMember>& sampled) {
  batch_.clear();
  sampled.clear();
  pooled_.clear();
  for (const BatchMember& member : plan.members) {
    add_member(plan, member);
    if (member.shadow) {
      if (member.samples) mix_with_shadow();
      continue;
    }
    ActiveRequest& request = requests.at(member.request);
    if (request.pooling() != nullptr) add_pooled_rows(member, *request.pooling());
    const bool keeps_hidden = request.contrastive() != nullptr && request.hidden_fault().empty();
    if (keeps_hidden) keep_hidden_rows(member, request);
    if (!member.samples && member.scored == 0) continue;
    if (member.scored > 0) add_scored_rows(member, request);
    sampled.push_back({.request = member.request,
                       .first_row = static_cast<uint32_t>(batch_.logit_rows.size()),
                       .scored = member.scored,
                       .samples = member.samples,
                       .proposed = member.proposed,
                       .awaits_host = member.awaits_host,
                       .constrained = member.samples && request.constraint() != nullptr,
                       .contrastive = request.contrastive() != nullptr});
    if (!member.samples) continue;
    if (request.contrastive() != nullptr)
      add_candidate_rows(member, request);
    else
      add_sampled_rows(plan, member, request);
    if (request.uncounted().empty()) continue;
    if (request.uses_history()) batch_.commit(member.slot, request.uncounted());
    request.all_counted();
  }
  if (plan.padding_tokens > 0) add_padding(plan);
  return batch_;
}

void BatchBuilder::add_member(const BatchPlan& plan, const BatchMember& member) {
  if (member.candidates) return add_candidates(plan, member);
  batch_.add_sequence(
      member.first_position,
      std::span<const TokenId>(plan.ids).subspan(member.first_id, member.tokens),
      std::span<const BlockId>(plan.block_ids).subspan(member.first_block, member.blocks),
      parents_of(plan, member));
  if (member.input_on_gpu) batch_.ids.back() = unread_token(member.input_slot);
}

// Each candidate is the only token of a sequence that shares the text's blocks.
void BatchBuilder::add_candidates(const BatchPlan& plan, const BatchMember& member) {
  const auto blocks = std::span(plan.block_ids).subspan(member.first_block, member.blocks);
  const size_t shared = blocks.size() - member.tokens;
  table_.assign(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(shared) + 1);
  for (uint32_t i = 0; i < member.tokens; ++i) {
    table_.back() = blocks[shared + i];
    batch_.add_sequence(member.first_position,
                        std::span<const TokenId>(plan.ids).subspan(member.first_id + i, 1), table_);
  }
}

// The member that was added last is the shadow of the request that was sampled last: its logits are
// mixed with that request's.
void BatchBuilder::mix_with_shadow() {
  assert(is_mixed(batch_.sampling.back()));
  batch_.sampling.back().other_row = static_cast<uint32_t>(batch_.logit_rows.size());
  batch_.sample(static_cast<uint32_t>(batch_.ids.size()) - 1, {});
}

// Of the member that was added last.
void BatchBuilder::add_pooled_rows(const BatchMember& member, PoolingState& pooling) {
  const PoolingState::Tokens tokens = pooling.take(member.first_position, member.tokens);
  if (tokens.count == 0) return;
  const uint32_t row = batch_.sequences.back().first_row + tokens.first - member.first_position;
  const auto first = static_cast<uint32_t>(batch_.pools.size());
  pooled_.push_back(
      {.request = member.request, .first_range = first, .ranges = batch_.pool(row, tokens.count)});
}

// Samples after the newest committed token of the member that was added last, and after each of its
// proposed tokens. If the host has to decide, the rows change nothing on the device; they report
// which proposals they accept.
void BatchBuilder::add_sampled_rows(const BatchPlan& plan, const BatchMember& member,
                                    const ActiveRequest& request) {
  const auto rows = static_cast<uint32_t>(batch_.ids.size());
  const uint32_t first_proposal = rows - member.proposed;
  const uint32_t position = member.first_position + member.tokens - member.proposed;
  const auto proposed = std::span<const TokenId>(batch_.ids).subspan(first_proposal);
  const uint32_t proposals = batch_.add_proposals(proposed);
  std::array<VerifiedRow, 1 + kMaxProposed> verified{};
  find_verified_rows(parents_of(plan, member), in_place_,
                     std::span(verified).first(1 + member.proposed));
  const Constraint* const constraint = request.constraint().get();
  for (uint32_t i = 0; i <= member.proposed; ++i) {
    const auto& [path, followers] = verified[i];
    params::SamplingRow row =
        request.sampling_row(member.slot, position + static_cast<uint32_t>(std::popcount(path)));
    if (member.awaits_host)
      verify_only(row, {.proposals = proposals, .path = path, .followers = followers});
    if (constraint != nullptr) use_mask(row, batch_.add_mask(constraint->mask(i)));
    std::array<TokenId, kMaxProposed> path_tokens{};
    uint32_t length = 0;
    for (uint32_t k = 0; k < i; ++k)
      if ((path >> k & 1) != 0) path_tokens[length++] = proposed[k];
    const auto known_path = std::span<const TokenId>(path_tokens).first(length);
    assert(!request.needs_proposed_ids() || std::ranges::none_of(known_path, is_unread));
    RequestSamplers::Place place{.path = known_path};
    if (i == 0) {
      place.read_slot = member.input_on_gpu ? member.slot : params::kNoSlot;
      place.write_slot = member.awaits_host ? params::kNoSlot : member.slot;
    }
    request.samplers().add_to(row, place, batch_.words);
    sample_after(batch_, first_proposal - 1 + i, row);
  }
}

// Keeps the hidden states of the member that was added last: those of its candidates beyond the
// text, into which that of the candidate taken last is copied.
void BatchBuilder::keep_hidden_rows(const BatchMember& member, ActiveRequest& request) {
  KeptRows kept{.first_row = static_cast<uint32_t>(batch_.ids.size()) - member.tokens,
                .rows = member.tokens,
                .slot = member.slot,
                .first_position = member.first_position};
  if (member.candidates) {
    kept.first_position = staged_hidden(member.first_position);
    if (request.staged_hidden() != 0) {
      kept.copied_from = request.staged_hidden();
      kept.copied_to = member.first_position - 1;
    }
    request.set_staged_hidden(0);
  }
  batch_.kept.push_back(kept);
}

// Samples after each candidate of the member that was added last, and compares their hidden states
// with those of the tokens before them. Without candidates, samples after the newest token.
void BatchBuilder::add_candidate_rows(const BatchMember& member, const ActiveRequest& request) {
  const auto rows = static_cast<uint32_t>(batch_.ids.size());
  const uint32_t first_candidate = rows - member.proposed;
  const uint32_t tokens = member.first_position + member.tokens - member.proposed;
  const auto candidates = std::span<const TokenId>(batch_.ids).subspan(first_candidate);
  const uint32_t proposals = batch_.add_proposals(candidates);
  const auto sample = [&](uint32_t row, uint32_t position, uint32_t path,
                          std::span<const TokenId> path_tokens) {
    params::SamplingRow how = request.sampling_row(member.slot, position);
    verify_only(how, {.proposals = proposals, .path = path});
    request.samplers().add_to(how, {.path = path_tokens}, batch_.words);
    return batch_.sample(row, how);
  };
  if (member.proposed == 0) sample(rows - 1, tokens, 0, {});
  for (uint32_t i = 0; i < member.proposed; ++i) {
    const uint32_t row = first_candidate + i;
    const uint32_t logit_row = sample(row, tokens + 1, 1u << i, candidates.subspan(i, 1));
    if (request.hidden_fault().empty())
      batch_.compared.push_back({.logit_row = logit_row, .slot = member.slot, .tokens = tokens});
  }
}

// Asks at prompt tokens of the member that was added last for the log-probability of the next one.
void BatchBuilder::add_scored_rows(const BatchMember& member, const ActiveRequest& request) {
  const auto rows = static_cast<uint32_t>(batch_.ids.size());
  const uint32_t first_row = rows - member.tokens + member.first_scored;
  const uint32_t next = member.first_position + member.first_scored + 1;
  for (uint32_t i = 0; i < member.scored; ++i)
    batch_.sample(first_row + i, make_score_row(request.request().prompt[next + i],
                                                request.request().sampling.top_logprobs));
}

// A padded step is a rectangle, and its padding is computed as any other row would be: it attends
// to as many keys as the longest member's tokens at the same places. The row of a member that has
// ended goes through the logits as well, which are most of the work in a small model. Nothing is
// sampled from padding.
void BatchBuilder::add_padding(const BatchPlan& plan) {
  const uint32_t width = std::ranges::max(plan.members, {}, &BatchMember::tokens).tokens;
  const params::StepSequence longest = widest_sequence(width);
  const auto pad = [&](uint32_t rows) {
    const uint32_t seeing = std::min(rows, longest.rows);
    batch_.add_padding(longest, seeing);
    batch_.padding_rows += rows - seeing;
  };
  uint32_t tokens = plan.padding_tokens;
  for (const BatchMember& member : plan.members) {
    if (member.tokens < width) pad(width - member.tokens);
    tokens -= width - member.tokens;
  }
  for (; tokens > 0; tokens -= width) {
    pad(width);
    batch_.logit_rows.push_back(batch_.rows() - 1);
    batch_.sampling.push_back({});
  }
}

// The longest sequence with as many rows as the widest member. If that is one with candidates, the
// end of its text stands for them.
params::StepSequence BatchBuilder::widest_sequence(uint32_t width) const {
  params::StepSequence longest =
      *std::ranges::max_element(batch_.sequences, {}, [](const params::StepSequence& sequence) {
        return std::pair(sequence.rows, sequence.first_position);
      });
  if (longest.rows == width) return longest;
  const uint32_t end = longest.first_position + longest.rows;
  longest.rows = std::min(width, end);
  longest.first_position = end - longest.rows;
  return longest;
}

}  // namespace hearth
