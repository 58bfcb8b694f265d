// The ranks of a session as rank 0 sees them: brings them up, and runs the engine's steps on all of
// them. Rank 0's own model and runner belong to the session. For one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/model/layer_range.h"
#include "engine/model/step_runner.h"
#include "engine/ranks/layer_split.h"
#include "engine/ranks/link.h"
#include "engine/ranks/link_exchange.h"
#include "engine/ranks/rank_executor.h"
#include "engine/ranks/rank_setup.h"
#include "runtime/result.h"

namespace hearth {

class Instance;
struct SessionOptions;

// The part of a model that a rank has.
struct ModelShare {
  LayerRange held = {};
  TensorShard shard = {};
  BlockDeal deal = {};
};

// "layers 16 to 31", "share 1 of 2 of every layer", or "share 1 of 2 of the KV cache".
std::string share_text(const ModelShare& share);

// Fails if a model's layers cannot be divided over that many ranks.
Status check_shards(const ModelFile& file, uint32_t ranks);

// What each part of a model takes; the ranks are yet to be added.
Result<SplitRequest> split_request(const ModelFile& file);

class RankGroup {
 public:
  // Starts the other ranks, which open their devices: threads of this process, or, if the options
  // have a link, processes that run run_rank_worker(). Arguments outlive the group.
  static Result<std::unique_ptr<RankGroup>> open(Instance& instance, const ModelFile& file,
                                                 const SessionOptions& options);
  // Stops the ranks. REQUIRES: the engine on executor() was destroyed.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // Divides the model, given rank 0's own device; returns rank 0's share.
  Result<ModelShare> divide(const RankOffer& own);
  // Asks all ranks how much they have room for. `memory` is rank 0's plan and becomes one that all
  // ranks can follow.
  Status plan(MemoryPlan& memory, uint32_t wanted_blocks);
  // StepLimits::divided_rows: as the options say, or measured; divided_rows_text() says why.
  // `share` is rank 0's.
  Result<uint32_t> divided_rows(Device& device, const ModelPlan& share, const StepLimits& limits);
  // Host memory for swapped-out blocks, on all ranks together; `own_most` is rank 0's limit.
  uint32_t swap_blocks(uint64_t bytes, uint64_t own_most) const;
  // Tells the others to load their layers, while rank 0 loads its own.
  Status load(const StepRunnerOptions& options, const ModelConfig& config);
  // Memory for the rows between ranks of this process; empty if they are processes. Runners with
  // StepRunnerOptions::rows need it. REQUIRES: load() succeeded.
  std::shared_ptr<const SharedRowsList> shared_rows() const { return shared_rows_; }
  // Waits until all have loaded, and runs rank 0's layers on `runner`, which outlives the group.
  Status start(StepRunner& runner);

  // Where rank 0's runner meets the others within a step; null if ranks only have layers.
  RankExchange* exchange() { return exchange_ ? &*exchange_ : nullptr; }
  // REQUIRES: start() succeeded.
  RankExecutor& executor() { return *executor_; }
  uint32_t count() const { return link_->ranks(); }
  // Called with the reason, on a thread of the group, when a rank is lost; at once if one is. Null:
  // nobody wants to know any more, and no call is in progress.
  void on_loss(std::function<void(const std::string& reason)> tell);
  // "rank 1: NVIDIA ..., layers 16 to 31, 4.5 GiB of weights", one line per rank.
  std::vector<std::string> describe() const;
  // Whether norms are divided, and why, in one line; empty unless every layer is divided.
  const std::string& divided_rows_text() const { return divided_rows_text_; }

 private:
  RankGroup(const ModelFile& file, const SessionOptions& options)
      : file_(file), options_(options) {}
  Result<Message> receive_setup(uint32_t rank);
  // A task without anything but the rank's share.
  RankTask share_task(uint32_t rank) const;
  // That a step is divided into.
  uint32_t suitable_parts() const;
  template <class T>
  Result<T> named(uint32_t rank, Result<T> result) const;

  const ModelFile& file_;
  const SessionOptions& options_;
  std::vector<std::unique_ptr<Link>> own_links_;  // of threads
  Link* link_ = nullptr;                          // rank 0's
  std::shared_ptr<SharedRowsList> shared_rows_ = std::make_shared<SharedRowsList>();
  std::vector<std::thread> threads_;
  std::vector<RankOffer> offers_;   // by rank
  std::vector<ModelShare> shares_;  // by rank
  std::vector<RankRoom> rooms_;     // by rank
  std::string divided_rows_text_;
  std::optional<LinkExchange> exchange_;  // rank 0's
  std::unique_ptr<RankExecutor> executor_;
  std::mutex loss_;  // for the next two
  std::function<void(const std::string&)> tell_;
  std::string lost_;  // why; empty: no rank is
};

}  // namespace hearth
