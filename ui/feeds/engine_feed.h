// The feed of an engine in this process. Steps come from its ring. Blocks and sequences are looked
// at between two steps by a thread of the feed, when somebody polls, thirty times a second at most
// and for at most a hundredth of the engine's time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ui/feeds/feed.h"

namespace hearth {

// What does not change while the engine lives.
struct EngineFacts {
  std::string source, model, device;
  std::vector<MemoryPart> memory;
  uint64_t memory_budget_bytes = 0;
};

class EngineFeed final : public Feed {
 public:
  // The engine outlives the feed.
  EngineFeed(Engine& engine, EngineFacts facts);
  ~EngineFeed() override;

  void poll(EngineView& view) override;

 private:
  // Of one look at the scheduler.
  struct Snapshot {
    std::vector<SequenceView> sequences;
    std::vector<BlockView> blocks;
    uint64_t step = 0;
  };

  void snapshot_loop();
  void read_steps(EngineView& view);
  void read_metrics(EngineView& view) const;

  Engine& engine_;
  const EngineFacts facts_;
  uint64_t next_record_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool snapshot_wanted_ = false, stopping_ = false, snapshot_ready_ = false;
  Snapshot newest_;   // under mutex_
  Snapshot working_;  // of the thread alone

  std::thread thread_;
};

}  // namespace hearth
