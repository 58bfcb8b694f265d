// Feeds the dashboard from an engine in this process. Step records come from the engine's ring.
// Snapshots of blocks and sequences are taken between two steps by the feed's own thread, only
// after a poll(), at most thirty times a second and using at most 1 % of the engine's time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ui/feeds/feed.h"

namespace hearth {

// What stays the same for the engine's lifetime.
struct EngineFacts {
  std::string source, model, device;
  std::vector<MemoryPart> memory;
  uint64_t memory_budget_bytes = 0;
};

// A snapshot is taken while a step runs, and that step may end some of its sequences before the
// frame is drawn. Counts them as ending, not as running, so that all panels show as many requests.
void note_ended(EngineView& view);

class EngineFeed final : public Feed {
 public:
  // REQUIRES: the engine outlives the feed.
  EngineFeed(Engine& engine, EngineFacts facts);
  ~EngineFeed() override;

  void poll(EngineView& view) override;

 private:
  // The scheduler's state after `step` steps.
  struct Snapshot {
    std::vector<SequenceView> sequences;
    std::vector<BlockView> blocks;
    std::vector<BlockId> block_tables;
    SchedulerCounts counts;
    EngineTotals totals;
    uint64_t step = 0;
  };

  void snapshot_loop();
  void read_steps(EngineView& view);
  EngineTotals read_totals() const;

  Engine& engine_;
  const EngineFacts facts_;
  uint64_t next_record_ = 0;
  StepRecord record_;  // the next one, which may be newer than the snapshot
  bool record_read_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool snapshot_wanted_ = false, stopping_ = false, snapshot_ready_ = false;
  Snapshot newest_;   // guarded by mutex_
  Snapshot working_;  // used only by thread_

  std::thread thread_;
};

}  // namespace hearth
