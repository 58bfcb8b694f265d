// How ranks start: every rank offers its device; rank 0 divides the layers; every rank says how
// many KV blocks it has room for; rank 0 tells all to load with the smallest number; every rank
// reports that it is ready. Plain data, and how it is written as messages. README.md has the order.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/model/layer_range.h"
#include "engine/model/tensor_shard.h"
#include "engine/ops/block_deal.h"
#include "engine/ranks/link.h"
#include "runtime/result.h"

namespace hearth {

// A rank to rank 0.
struct RankOffer {
  std::string device;        // its name
  uint64_t free_bytes = 0;   // of its memory, for this rank
  uint64_t fingerprint = 0;  // of the model file and of how the program was built
  bool is_cpu = false;
  std::array<uint8_t, 16> device_uuid = {};  // of the card
};

// Rank 0 to a rank: how much room is there, or, with `load`, begin, or, with `echoes`, take part in
// timing the link (link_timing.h).
struct RankTask {
  LayerRange held;
  TensorShard shard;
  BlockDeal deal;
  uint32_t context = 0;       // 0: the model's own
  uint32_t kv_blocks = 0;     // 0: as many as are useful and fit
  uint32_t swap_blocks = 0;   // if `load`
  uint32_t divided_rows = 0;  // if `load`; StepLimits::divided_rows
  bool load = false;
  bool echoes = false;
};

// A rank to rank 0, for a task.
struct RankRoom {
  uint64_t weight_bytes = 0, activation_bytes = 0;
  uint64_t kv_bytes_per_block = 0;  // on average, if ranks share the blocks
  uint32_t context = 0, max_context = 0, kv_blocks = 0;
  uint64_t most_swap_blocks = 0;
  bool fits = false;
};

// Each message is a value or the error for which there is none.
Message write_offer(const Result<RankOffer>& offer);
Result<RankOffer> read_offer(const Message& message);
Message write_task(const RankTask& task);
Result<RankTask> read_task(const Message& message);
Message write_room(const Result<RankRoom>& room);
Result<RankRoom> read_room(const Message& message);
Message write_ready(const Status& status);
Status read_ready(const Message& message);

}  // namespace hearth
