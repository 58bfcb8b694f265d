// Runs a lesson on the engine on display, one run after the other, so that all panels show it, and
// measures it from the engine's records. Never waits for a step. Call only from the window's
// thread.
//
// On a real device each run is played once before it is measured, because kernels are compiled when
// they first come up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "runtime/result.h"
#include "tools/lessons/lesson.h"
#include "tools/lessons/lesson_results.h"
#include "tools/replay/replay_requests.h"
#include "tools/replay/step_tally.h"
#include "tools/replay/trace.h"

namespace hearth {

// The engine on display.
struct LessonStage {
  Engine* engine = nullptr;  // null: there is none
  const Tokenizer* tokenizer = nullptr;
  uint64_t generation = 0;  // changes with the engine
  bool modelled = false;    // a modelled device
  double kv_bytes_per_block = 0, weight_bytes = 0;
  std::string model, device;
};

// Why the lesson cannot run on this engine: it changes more than scheduling, or needs larger limits
// than the engine was created with. Empty: it can.
std::string why_not_live(const Lesson& lesson, const LessonStage& stage);

class LessonPlayer {
 public:
  LessonPlayer() = default;
  LessonPlayer(const LessonPlayer&) = delete;
  LessonPlayer& operator=(const LessonPlayer&) = delete;

  // REQUIRES: why_not_live() is empty, and `lesson` stays as it is until the player has stopped.
  void start(const Lesson& lesson, const LessonStage& stage);
  // Cancels the requests and restores policy and limits. The engine must still be there.
  void stop(const LessonStage& stage);
  // Call once per frame. `slowed`: the engine is paused or in slow motion.
  void update(const LessonStage& stage, bool slowed);

  bool running() const { return lesson_ != nullptr; }
  // What it is doing, for people: "run static (1 of 2)".
  std::string status() const;
  double progress() const;  // 0 to 1
  // How it ended, once.
  std::optional<Result<LessonResults>> take_results();

 private:
  void begin_run(const LessonStage& stage);
  void submit_arrived(Engine& engine);
  void read_records(Engine& engine);
  void finish_run(const LessonStage& stage);
  void end(Engine* engine, Result<LessonResults> results);
  bool warming() const { return rounds_ > 1 && round_ == 0; }

  const Lesson* lesson_ = nullptr;  // null: not running
  uint64_t generation_ = 0;
  Policy old_policy_;
  SchedulerLimits old_limits_;
  LessonResults results_;
  std::optional<Result<LessonResults>> outcome_;

  size_t run_ = 0;                   // index of the run
  uint32_t round_ = 0, rounds_ = 1;  // of each run; the last one is measured
  uint64_t prompt_seed_ = 0;         // a new one per round, so that no prefix is cached already
  bool started_ = false;             // the run's requests are being submitted
  bool slowed_ = false, disturbed_ = false;
  Trace trace_;
  std::vector<std::vector<TokenId>> prompts_;
  double begin_ = 0;  // on the engine's clock
  ReplayStreams streams_;
  StepTally tally_;
  uint64_t next_record_ = 0;
  size_t finished_ = 0;  // requests
  uint64_t blocks_swapped_out_ = 0, blocks_swapped_in_ = 0;
  uint64_t query_tokens_ = 0, hit_tokens_ = 0;  // of the prefix cache, before the run
};

}  // namespace hearth
