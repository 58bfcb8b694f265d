#include "engine/ranks/rank_executor.h"

#include <algorithm>
#include <utility>

#include "engine/ranks/step_division.h"
#include "params/embed.h"

namespace hearth {
namespace {

template <class T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

RankExecutor::RankExecutor(Link& link, const RankExecutorOptions& options)
    : link_(link), options_(options), sampled_by_(options.slots) {}

RankExecutor::~RankExecutor() {
  // If the link has failed, the ranks have stopped by themselves.
  static_cast<void>(send_to_all(write_stop()).ok());
}

Status RankExecutor::send_to_all(const Message& message) {
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank)
    HEARTH_TRY(link_.send(rank, Channel::kCommands, message));
  return {};
}

Status RankExecutor::send_part(const StepBatch& part) {
  uint64_t after = 0;
  for (const uint32_t id : part.ids)
    if ((id & params::kSampledId) != 0)
      after = std::max(after, sampled_by_[id & ~params::kSampledId]);
  ++step_;
  const Message layers = write_step(
      step_, after, part, options_.whole_steps ? StepPart::kLayersAndSampling : StepPart::kLayers);
  for (uint32_t rank = 0; rank < last_rank(); ++rank)
    HEARTH_TRY(link_.send(rank, Channel::kCommands, layers));
  HEARTH_TRY(link_.send(last_rank(), Channel::kCommands,
                        write_step(step_, after, part, StepPart::kLayersAndSampling)));
  for (const params::SamplingRow& row : part.sampling)
    if (row.id_index < sampled_by_.size()) sampled_by_[row.id_index] = step_;
  return {};
}

Result<StepTicket> RankExecutor::submit(const StepBatch& batch) {
  if (!batch.kept.empty() || !batch.compared.empty())
    return Error{ErrorKind::kUnsupported,
                 "contrastive search is not available with several devices"};
  const std::vector<StepBatch> parts = divided(batch, submitted_[next_]);
  for (const StepBatch& part : parts) HEARTH_TRY(send_part(part));
  const StepTicket ticket{.copy = next_,
                          .logit_rows = static_cast<uint32_t>(batch.logit_rows.size())};
  submitted_[next_].parts = static_cast<uint32_t>(parts.size());
  next_ = (next_ + 1) % kStepsInFlight;
  return ticket;
}

std::vector<StepBatch> RankExecutor::divided(const StepBatch& batch, Submitted& step) {
  step.submitted = rank_clock();
  step.decoded_rows = 0;
  const uint32_t rows = batch.rows();
  if (!options_.measure_decoding || options_.parts == 1 || rows < options_.parts ||
      batch.longest() > 1 || !is_plain_step(batch))
    return divide_step(batch, options_.parts, options_.least_part_rows);
  step.decoded_rows = rows;
  return divide_step(batch, choice_.divides(rows) ? options_.parts : 1, 1);
}

void RankExecutor::measure(const Submitted& step) {
  const double now = rank_clock();
  // A step that was submitted after the one before was done did not keep the ranks busy.
  if (step.decoded_rows > 0 && last_done_ > 0 && step.submitted < last_done_)
    choice_.took(step.decoded_rows, step.parts > 1, now - last_done_);
  last_done_ = step.decoded_rows > 0 ? now : 0;
}

Result<StepOutcome> RankExecutor::wait(const StepTicket& ticket) {
  Submitted& step = submitted_[ticket.copy];
  ResultsMessage& all = step.results;
  for (uint32_t part = 0; part < step.parts; ++part) {
    HEARTH_ASSIGN(const Message message, link_.receive(last_rank(), Channel::kResults));
    HEARTH_ASSIGN(ResultsMessage results, read_results(message));
    HEARTH_TRY(results.status);
    if (part == 0) {
      all = std::move(results);
      continue;
    }
    // Only parts with such rows have lists of the most probable tokens and of mirostat's state.
    const size_t before = all.sampled.size();
    append(all.sampled, results.sampled);
    const auto join = [&]<class T>(std::vector<T>& list, const std::vector<T>& more, size_t row) {
      if (list.empty() && more.empty()) return;
      list.resize(before * row);
      append(list, more);
      list.resize(all.sampled.size() * row);
    };
    join(all.top, results.top, params::kMaxTopLogprobs);
    join(all.mirostat, results.mirostat, 1);
  }
  measure(step);
  return StepOutcome{
      .sampled = all.sampled, .top = all.top, .pooled = all.pooled, .mirostat = all.mirostat};
}

Result<std::vector<RankTimes>> RankExecutor::times() {
  HEARTH_TRY(send_to_all(write_report()));
  std::vector<RankTimes> times;
  for (uint32_t rank = 0; rank < link_.ranks(); ++rank) {
    HEARTH_ASSIGN(const Message message, link_.receive(rank, Channel::kSetup));
    HEARTH_ASSIGN(times.emplace_back(), read_times(message));
  }
  return times;
}

Status RankExecutor::fork_blocks(std::span<const BlockMove> moves) {
  return send_to_all(write_moves(RankVerb::kForkBlocks, moves));
}

Status RankExecutor::swap_out(std::span<const BlockMove> moves) {
  traffic_.out_bytes += moves.size() * options_.block_bytes;
  return send_to_all(write_moves(RankVerb::kSwapOut, moves));
}

Status RankExecutor::swap_in(std::span<const BlockMove> moves) {
  traffic_.in_bytes += moves.size() * options_.block_bytes;
  return send_to_all(write_moves(RankVerb::kSwapIn, moves));
}

Status RankExecutor::set_history(uint32_t slot, std::span<const params::TokenCount> tokens) {
  return link_.send(last_rank(), Channel::kCommands, write_history(slot, tokens));
}

Status RankExecutor::set_biases(uint32_t slot, std::span<const params::TokenBias> biases) {
  if (biases.size() > kMaxBiases) return invalid("too many logit biases for one request");
  return link_.send(last_rank(), Channel::kCommands, write_biases(slot, biases));
}

Status RankExecutor::reserve_hidden(uint32_t, uint32_t tokens) {
  if (tokens == 0) return {};
  return Error{ErrorKind::kUnsupported, "contrastive search is not available with several devices"};
}

}  // namespace hearth
