// What a batch must satisfy before a StepRunner runs it.
#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "engine/model/step_runner.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduling/unread_token.h"

namespace hearth {
namespace {

// Whether the row's proposals are in the words, and the unread ones in a place on the device.
bool refers_to_proposals(const params::SamplingRow& row, const std::vector<uint32_t>& words,
                         uint64_t places) {
  const auto count = static_cast<uint32_t>(std::bit_width(row.path | row.followers));
  if (count == 0) return true;
  if (uint64_t{row.proposals} + count > words.size()) return false;
  return std::ranges::none_of(std::span(words).subspan(row.proposals, count), [&](TokenId id) {
    return is_unread(id) && place_of_unread(id) >= places;
  });
}

// Whether the row's DRY penalties and stages are in the words.
bool refers_to_words(const params::SamplingRow& row, const std::vector<uint32_t>& words) {
  if (has_stages(row) &&
      row.stages + sizeof(params::SamplingStages) / sizeof(uint32_t) > words.size())
    return false;
  if ((row.flags & params::kSamplingDry) == 0) return true;
  return row.dry < words.size() && row.dry + 2 * uint64_t{words[row.dry]} < words.size();
}

}  // namespace

Status StepRunner::check(const StepBatch& batch) const {
  const StepLimits& limits = options_.limits;
  if (batch.rows() > limits.rows || batch.members() > limits.most_sequences() ||
      batch.padding_sequences > limits.sequences || batch.logit_rows.size() > limits.logit_rows ||
      batch.logit_rows.size() != batch.sampling.size() || batch.sequences.empty())
    return Error{
        ErrorKind::kInvalid,
        fmt::format("a step of {} tokens, {} sequences and {} logits is outside the limits "
                    "of {}, {} and {}",
                    batch.rows(), batch.sequences.size(), batch.logit_rows.size(), limits.rows,
                    limits.most_sequences(), limits.logit_rows)};
  for (const params::StepSequence& sequence : batch.sequences)
    if (sequence.first_position + sequence.rows > limits.context)
      return Error{ErrorKind::kInvalid,
                   fmt::format("a sequence of {} tokens is longer than the context of {}",
                               sequence.first_position + sequence.rows, limits.context)};
  if (batch.entering.size() != boundary_.entering_floats(batch.rows()))
    return Error{ErrorKind::kInvalid,
                 "a step's hidden rows are not those that enter the layers of this device"};
  if (!model_.config().has_output() && !batch.logit_rows.empty())
    return Error{ErrorKind::kInvalid, "a step asks for logits on a device without the last layer"};
  HEARTH_TRY(check_places(batch));
  return check_extras(batch);
}

Status StepRunner::check_places(const StepBatch& batch) const {
  const uint64_t places = sampled_ids().bytes() / sizeof(uint32_t);
  const bool reads = std::ranges::any_of(
      batch.ids, [&](TokenId id) { return is_unread(id) && place_of_unread(id) >= places; });
  const bool writes = std::ranges::any_of(batch.sampling, [&](const params::SamplingRow& row) {
    return (row.flags & params::kSamplingActive) != 0 && row.id_index != params::kNoSlot &&
           row.id_index >= places;
  });
  if (!reads && !writes) return {};
  return Error{ErrorKind::kInvalid, "a step's sampled id has no place on the device"};
}

Status StepRunner::check_extras(const StepBatch& batch) const {
  const auto wrong = [](const char* what) {
    return Error{ErrorKind::kInvalid, std::string("a step's ") + what};
  };
  if (batch.commits.size() > batch.sequences.size())
    return wrong("commits are more than its sequences");
  for (const params::HistoryCommit& commit : batch.commits)
    if (commit.slot >= options_.slots || uint64_t{commit.first} + commit.count > batch.words.size())
      return wrong("commit refers to a slot or to tokens that do not exist");
  if (batch.pools.size() > batch.ids.size() / params::kMaxPoolRows + batch.sequences.size())
    return wrong("pooled ranges are too many");
  for (const params::PoolRange& range : batch.pools)
    if (uint64_t{range.first_row} + range.rows > batch.ids.size() || range.rows == 0 ||
        range.rows > params::kMaxPoolRows)
      return wrong("pooled rows do not exist");
  const auto has_room = [&](uint32_t slot, uint64_t tokens) {
    return hidden_ && slot < options_.slots && tokens <= hidden_->reserved(slot);
  };
  for (const KeptRows& kept : batch.kept)
    if (uint64_t{kept.first_row} + kept.rows > batch.ids.size() || kept.rows == 0 ||
        !has_room(kept.slot, uint64_t{kept.first_position} + kept.rows) ||
        !has_room(kept.slot, uint64_t{std::max(kept.copied_from, kept.copied_to)} + 1))
      return wrong("hidden states to be kept do not exist or have no room");
  for (const ComparedRow& row : batch.compared)
    if (row.logit_row >= batch.logit_rows.size() || !has_room(row.slot, row.tokens))
      return wrong("hidden states to be compared do not exist");
  const uint64_t places = sampled_ids().bytes() / sizeof(uint32_t);
  const uint64_t mask_words = divide_up(model_.config().vocabulary, 32);
  for (const params::SamplingRow& row : batch.sampling) {
    if (!refers_to_proposals(row, batch.words, places))
      return wrong("sampling row refers to proposals that do not exist");
    if ((row.flags & params::kSamplingMask) != 0 && row.mask + mask_words > batch.words.size())
      return wrong("sampling row refers to a mask that does not exist");
    if ((row.flags & params::kSamplingGiven) != 0 && row.given >= model_.config().vocabulary)
      return wrong("sampling row scores a token that does not exist");
    if (!refers_to_words(row, batch.words))
      return wrong("sampling row refers to DRY penalties or stages that do not exist");
    if (!is_mixed(row)) continue;
    if ((row.other_row & params::kOtherModel) != 0) {
      const uint64_t end = (row.other_row & ~params::kOtherModel) + 1;
      if (options_.other_logits == nullptr ||
          options_.other_logits->bytes() < end * model_.config().vocabulary * sizeof(float))
        return wrong("sampling row is mixed with another model's logits, which do not exist");
    } else if (row.other_row >= batch.sampling.size() ||
               (batch.sampling[row.other_row].flags & params::kSamplingActive) != 0) {
      return wrong("sampling row is mixed with one that does not exist or is sampled itself");
    }
  }
  return {};
}

}  // namespace hearth
