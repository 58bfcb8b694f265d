// What rank 0 tells the other ranks, and itself, to do, and what they answer; with how each is
// written as a message. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/step_batch.h"
#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
#include "engine/ranks/rank_times.h"
#include "engine/scheduling/batch_plan.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

enum class RankVerb : uint32_t {
  kStep,
  kForkBlocks,
  kSwapOut,
  kSwapIn,
  kSetHistory,
  kSetBiases,
  kReport,  // the rank's times since the last report, on Channel::kSetup
  kStop,
};

struct RankCommand {
  RankVerb verb = RankVerb::kStop;
  // kStep. Steps are numbered from 1. The first rank waits for the sampled ids of all steps up to
  // `after` before it begins: the step's ids refer to them.
  uint64_t step = 0, after = 0;
  StepBatch batch;
  std::vector<BlockMove> moves;  // kForkBlocks, kSwapOut, kSwapIn
  uint32_t slot = 0;             // kSetHistory, kSetBiases
  std::vector<params::TokenCount> history;
  std::vector<params::TokenBias> biases;
};

// Which part of a step a rank needs: only the last one samples.
enum class StepPart { kLayers, kLayersAndSampling };
Message write_step(uint64_t step, uint64_t after, const StepBatch& batch, StepPart part);
Message write_moves(RankVerb verb, std::span<const BlockMove> moves);
Message write_history(uint32_t slot, std::span<const params::TokenCount> tokens);
Message write_biases(uint32_t slot, std::span<const params::TokenBias> biases);
Message write_report();
Message write_stop();
Result<RankCommand> read_command(const Message& message);

// The hidden rows that leave a rank, or why there are none.
struct RowsMessage {
  uint64_t step = 0;
  double known = 0;  // rank_clock() when the device was done
  Status status;
  std::span<const float> rows;    // [rows, width], in the message
  std::optional<uint32_t> place;  // or where they are in SharedRows, `floats` of them
  uint64_t floats = 0;
  Message message;
};
struct RowsHead {
  uint64_t step = 0;
  double known = 0;
};
// In the memory of `over` if that is large enough.
Message write_rows(const RowsHead& head, const Status& status, std::span<const float> rows,
                   Message over = {});
Message write_rows_place(const RowsHead& head, uint32_t place, uint64_t floats);
Result<RowsMessage> read_rows(Message message);

// The ids that a step sampled, by slot.
struct SlotId {
  uint32_t slot = 0, id = 0;
};
struct IdsMessage {
  uint64_t step = 0;
  double known = 0;  // rank_clock() when the device was done
  std::vector<SlotId> ids;
};
Message write_ids(const RowsHead& head, const StepBatch& batch, const StepOutcome& outcome);
Result<IdsMessage> read_ids(const Message& message);

// What the engine gets of a step, with its own memory.
struct ResultsMessage {
  uint64_t step = 0;
  Status status;
  std::vector<params::SamplingResult> sampled;
  std::vector<params::TokenLogprob> top;
  std::vector<float> pooled, mirostat;
};
Message write_results(uint64_t step, const Status& status, const StepOutcome& outcome);
Result<ResultsMessage> read_results(const Message& message);

// The number of a step whose shared rows were read.
Message write_rows_read(uint64_t step);
Result<uint64_t> read_rows_read(const Message& message);

Message write_times(const RankTimes& times);
Result<RankTimes> read_times(const Message& message);

}  // namespace hearth
