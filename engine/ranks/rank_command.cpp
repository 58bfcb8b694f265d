#include "engine/ranks/rank_command.h"

#include "engine/ranks/message.h"

namespace hearth {
namespace {

void put_status(MessageWriter& writer, const Status& status) {
  writer.value(static_cast<uint32_t>(status.ok()));
  if (status.ok()) return;
  writer.value(status.error().kind).text(status.error().message);
}

Status take_status(MessageReader& reader) {
  uint32_t ok = 0;
  if (reader.value(ok); ok != 0) return {};
  Error error;
  reader.value(error.kind).text(error.message);
  return error;
}

template <class T>
Result<T> checked(T value, const MessageReader& reader) {
  HEARTH_TRY(reader.status());
  return value;
}

// Instead of a place in shared memory: the rows are in the message.
constexpr uint32_t kNoPlace = UINT32_MAX;

}  // namespace

Message write_step(uint64_t step, uint64_t after, const StepBatch& batch, StepPart part) {
  MessageWriter writer;
  writer.value(RankVerb::kStep).value(step).value(after);
  writer.list(batch.ids)
      .list(batch.sequences)
      .value(batch.padding_sequences)
      .list(batch.block_tables)
      .list(batch.ancestors)
      .value(batch.padding_rows);
  const bool samples = part == StepPart::kLayersAndSampling;
  writer.value(static_cast<uint32_t>(samples));
  if (samples)
    writer.list(batch.logit_rows)
        .list(batch.sampling)
        .list(batch.commits)
        .list(batch.pools)
        .list(batch.words);
  return writer.take();
}

Message write_moves(RankVerb verb, std::span<const BlockMove> moves) {
  return MessageWriter().value(verb).list(moves).take();
}

Message write_history(uint32_t slot, std::span<const params::TokenCount> tokens) {
  return MessageWriter().value(RankVerb::kSetHistory).value(slot).list(tokens).take();
}

Message write_biases(uint32_t slot, std::span<const params::TokenBias> biases) {
  return MessageWriter().value(RankVerb::kSetBiases).value(slot).list(biases).take();
}

Message write_report() { return MessageWriter().value(RankVerb::kReport).take(); }

Message write_stop() { return MessageWriter().value(RankVerb::kStop).take(); }

Result<RankCommand> read_command(const Message& message) {
  MessageReader reader(message);
  RankCommand command;
  reader.value(command.verb);
  switch (command.verb) {
    case RankVerb::kStep: {
      StepBatch& batch = command.batch;
      uint32_t samples = 0;
      reader.value(command.step).value(command.after);
      reader.list(batch.ids)
          .list(batch.sequences)
          .value(batch.padding_sequences)
          .list(batch.block_tables)
          .list(batch.ancestors)
          .value(batch.padding_rows)
          .value(samples);
      if (samples != 0)
        reader.list(batch.logit_rows)
            .list(batch.sampling)
            .list(batch.commits)
            .list(batch.pools)
            .list(batch.words);
      break;
    }
    case RankVerb::kForkBlocks:
    case RankVerb::kSwapOut:
    case RankVerb::kSwapIn:
      reader.list(command.moves);
      break;
    case RankVerb::kSetHistory:
      reader.value(command.slot).list(command.history);
      break;
    case RankVerb::kSetBiases:
      reader.value(command.slot).list(command.biases);
      break;
    case RankVerb::kReport:
    case RankVerb::kStop:
      break;
  }
  return checked(std::move(command), reader);
}

Message write_rows(const RowsHead& head, const Status& status, std::span<const float> rows,
                   Message over) {
  constexpr size_t kHead = 64;  // more than comes before the rows
  MessageWriter writer(std::move(over));
  writer.reserve(kHead + rows.size_bytes()).value(head);
  put_status(writer, status);
  if (status.ok()) writer.value(kNoPlace).list(rows);
  return writer.take();
}

Message write_rows_place(const RowsHead& head, uint32_t place, uint64_t floats) {
  MessageWriter writer;
  writer.value(head);
  put_status(writer, {});
  return writer.value(place).value(floats).take();
}

Result<RowsMessage> read_rows(Message message) {
  RowsMessage rows;
  rows.message = std::move(message);
  MessageReader reader(rows.message);
  RowsHead head;
  reader.value(head);
  rows.step = head.step;
  rows.known = head.known;
  rows.status = take_status(reader);
  if (!rows.status.ok()) return checked(std::move(rows), reader);
  uint32_t place = kNoPlace;
  if (reader.value(place); place == kNoPlace)
    reader.view(rows.rows);
  else
    reader.value(rows.floats), rows.place = place;
  return checked(std::move(rows), reader);
}

Message write_ids(const RowsHead& head, const StepBatch& batch, const StepOutcome& outcome) {
  std::vector<SlotId> ids;
  for (size_t row = 0; row < outcome.sampled.size(); ++row) {
    const params::SamplingRow& how = batch.sampling[row];
    if ((how.flags & params::kSamplingActive) == 0 || how.id_index == params::kNoSlot) continue;
    ids.push_back({.slot = how.id_index, .id = outcome.sampled[row].id});
  }
  return MessageWriter().value(head).list(ids).take();
}

Result<IdsMessage> read_ids(const Message& message) {
  MessageReader reader(message);
  IdsMessage ids;
  reader.value(ids.step).value(ids.known).list(ids.ids);
  return checked(std::move(ids), reader);
}

Message write_results(uint64_t step, const Status& status, const StepOutcome& outcome) {
  MessageWriter writer;
  writer.value(step);
  put_status(writer, status);
  return writer.list(outcome.sampled)
      .list(outcome.top)
      .list(outcome.pooled)
      .list(outcome.mirostat)
      .take();
}

Result<ResultsMessage> read_results(const Message& message) {
  MessageReader reader(message);
  ResultsMessage results;
  reader.value(results.step);
  results.status = take_status(reader);
  reader.list(results.sampled).list(results.top).list(results.pooled).list(results.mirostat);
  return checked(std::move(results), reader);
}

Message write_rows_read(uint64_t step) { return MessageWriter().value(step).take(); }

Result<uint64_t> read_rows_read(const Message& message) {
  MessageReader reader(message);
  uint64_t step = 0;
  reader.value(step);
  return checked(step, reader);
}

Message write_times(const RankTimes& times) { return MessageWriter().value(times).take(); }

Result<RankTimes> read_times(const Message& message) {
  MessageReader reader(message);
  RankTimes times;
  reader.value(times);
  return checked(times, reader);
}

}  // namespace hearth
