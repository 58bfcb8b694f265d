// What rank 0 tells the other ranks, and itself, to do, and what they answer; with how each is
// written as a message. Plain data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/step_batch.h"
#include "engine/model/step_executor.h"
#include "engine/ranks/link.h"
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
Message write_stop();
Result<RankCommand> read_command(const Message& message);

// The hidden rows that leave a rank, or why there are none.
struct RowsMessage {
  uint64_t step = 0;
  Status status;
  std::span<const float> rows;  // [rows, width], in the message
  Message message;
};
Message write_rows(uint64_t step, const Status& status, std::span<const float> rows);
Result<RowsMessage> read_rows(Message message);

// The ids that a step sampled, by slot.
struct SlotId {
  uint32_t slot = 0, id = 0;
};
struct IdsMessage {
  uint64_t step = 0;
  std::vector<SlotId> ids;
};
Message write_ids(uint64_t step, const StepBatch& batch, const StepOutcome& outcome);
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

}  // namespace hearth
