#include "tools/commands/sequence_logits.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

Status check(const Session& session, std::span<const std::span<const uint32_t>> sequences) {
  const uint32_t vocabulary = session.model().config().vocabulary;
  const size_t tokens = sequences.front().size();
  if (tokens > session.memory().context)
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} tokens do not fit into the context of {}, which is {} tokens",
                             tokens, session.file().name(), session.memory().context)};
  const uint64_t blocks = sequences.size() * uint64_t{blocks_for(static_cast<uint32_t>(tokens))};
  if (blocks > session.memory().kv_blocks)
    return Error{ErrorKind::kOutOfMemory,
                 fmt::format("the KV cache has room for {} tokens, but {} are needed",
                             uint64_t{session.memory().kv_blocks} * kTokensPerBlock,
                             blocks * kTokensPerBlock)};
  for (const std::span<const uint32_t> ids : sequences)
    for (const uint32_t id : ids)
      if (id >= vocabulary)
        return Error{ErrorKind::kInvalid,
                     fmt::format("token {} is outside the vocabulary of {}", id, vocabulary)};
  return {};
}

}  // namespace

SessionOptions evaluation_options(SessionOptions options, uint32_t sequences, uint32_t tokens,
                                  bool logits_of_all) {
  if (options.max_step_tokens == 0) options.max_step_tokens = kEvaluationStepTokens;
  if (options.context == 0) options.context = tokens;
  options.max_sequences = sequences;
  options.logit_rows = logits_of_all ? options.max_step_tokens : sequences;
  if (options.kv_blocks == 0) options.kv_blocks = sequences * blocks_for(tokens);
  return options;
}

Status run_sequences(Session& session, std::span<const std::span<const uint32_t>> sequences,
                     uint32_t first_logit, const std::function<void(const LogitRows&)>& take) {
  HEARTH_TRY(check(session, sequences));
  StepRunner& runner = session.runner();
  const auto tokens = static_cast<uint32_t>(sequences.front().size());
  const auto count = static_cast<uint32_t>(sequences.size());
  const uint32_t chunk = std::max(1u, runner.options().limits.rows / count);
  const uint32_t blocks = blocks_for(tokens);
  std::vector<uint32_t> table(blocks);
  StepBatch batch;
  LogitRows rows{.vocabulary = session.model().config().vocabulary};
  for (uint32_t first = 0; first < tokens; first += chunk) {
    const uint32_t end = std::min(tokens, first + chunk);
    batch.clear();
    rows.places.clear();
    for (uint32_t i = 0; i < count; ++i) {
      const auto row = static_cast<uint32_t>(batch.ids.size());
      std::iota(table.begin(), table.end(), i * blocks);
      batch.add_sequence(first, sequences[i].subspan(first, end - first), table);
      for (uint32_t position = std::max(first, first_logit); position < end; ++position) {
        batch.logit_rows.push_back(row + position - first);
        batch.sampling.push_back({});
        rows.places.push_back({.sequence = i, .position = position});
      }
    }
    HEARTH_ASSIGN(const StepTicket ticket, runner.submit(batch));
    HEARTH_TRY(runner.wait(ticket));
    if (rows.places.empty()) continue;
    HEARTH_ASSIGN(rows.logits, runner.read_logits(ticket.logit_rows));
    take(rows);
  }
  return {};
}

}  // namespace hearth
