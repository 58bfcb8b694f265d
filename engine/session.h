// A loaded model with everything it needs, as front ends open it. Owns all from the Vulkan instance
// to the engine, and destroys it in the right order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "engine/companion_model.h"
#include "engine/decoding/speculation/method.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "engine/model/amateur_executor.h"
#include "engine/model/model.h"
#include "engine/model/step_preparation.h"
#include "engine/model/step_runner.h"
#include "engine/rank_group.h"
#include "engine/rank_options.h"
#include "engine/sampling_defaults.h"
#include "engine/scheduling/policy.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/model_file.h"
#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// A good SessionOptions::scored_rows for sessions that score prompts: a step costs hardly more than
// with one row, and the logits of a vocabulary of 128k take 32 MiB.
inline constexpr uint32_t kScoredRows = 64;
// Without --max-step-tokens: the longest step that prompts may cause while others generate tokens.
// Twenty tokens per second are still faster than anyone reads.
inline constexpr uint32_t kDefaultStepMs = 50;
inline constexpr uint64_t kDefaultSwapBytes = uint64_t{256} << 20;  // if no size is given

struct SessionOptions {
  std::string device;    // as -d takes it; empty: the best one
  RankOptions ranks;     // several devices that share the model's layers
  uint32_t context = 0;  // tokens per sequence; 0: the model's own, or what fits
  uint32_t max_sequences = 16;
  uint32_t max_step_tokens = 0;  // 0: what suits the device, within kDefaultStepMs
  uint32_t logit_rows = 0;       // per step; 0: one for each sequence
  uint32_t scored_rows = 0;     // prompt tokens per step that can be scored beyond one per sequence
  uint32_t candidate_rows = 0;  // candidates of contrastive search per step
  uint32_t kv_blocks = 0;       // 0: as many as are useful and fit
  uint64_t swap_bytes = 0;      // host memory for swapped-out sequences
  uint32_t max_queue = 4096;
  bool special_in_messages = false;  // see ChatTemplate::create()
  KvFormat kv = KvFormat::kF16;
  bool deterministic = false;
  SpeculationOptions speculation;
  std::string draft_model;  // as -m takes it; empty: the built-in one, if the method needs one
  // The amateur model of contrastive decoding, as -m takes it; empty: none. `contrast` is what
  // requests start from.
  std::string amateur;
  ContrastOptions contrast;
  Policy policy;
  bool start_paused = false;
  std::function<void(const std::string& reason)> rank_lost;  // any thread; engine() has failed then
  BlockObserver* block_observer = nullptr;  // of the prefix cache; it outlives the session
  // Compiles the kernels of all steps while the model loads and afterwards, so that no step waits
  // for a compiler. For programs that run for long; others compile what they need.
  bool prepare_steps = false;
  std::function<void(const PreparationProgress&)> prepared;  // once they are compiled; any thread
  Validation validation = Validation::kOff;
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

// The step sizes that a runner is created for, before memory limits are considered.
StepLimits step_limits(const SessionOptions& options, const DeviceCaps& caps,
                       uint32_t model_context);

// What to tell a user who asked for a longer context than the model's; empty if it is not longer.
std::string context_notice(uint32_t asked, uint32_t model_context);

// What to tell a user whose --kv-blocks do not all fit, or hold fewer tokens than the requested
// context; empty if they are enough.
std::string pool_notice(const SessionOptions& options, const MemoryPlan& plan);

// Whether a session with these options has a draft model: the method needs one, or one is given
// that it can use.
bool has_draft_model(const SessionOptions& options);

// How much of `free_bytes`, the free device memory, a session with these options may use.
uint64_t bytes_to_plan_with(const DeviceCaps& caps, uint64_t free_bytes,
                            const SessionOptions& options);

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(std::unique_ptr<ModelFile> file,
                                               const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Starts the engine at the first call; until then runner() may be used directly.
  Engine& engine();
  // Ends the engine and its requests. Then runner() may be used directly again, and engine() starts
  // a new one.
  void stop_engine();
  // The options that engine() starts with. A caller that needs several engines one after the other
  // creates them over executor() with these, and does not call engine().
  EngineOptions engine_options() const;
  // What an engine runs steps on: runner(), with the amateur's or the other ranks' if there are
  // any.
  StepExecutor& executor();

  const ModelFile& file() const { return *file_; }
  const Model& model() const { return *model_; }
  // Null if the model has no vocabulary.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }
  // An error with the reason if the model's template cannot be run.
  Result<const ChatTemplate*> chat_template() const;
  // What requests start from; a setting that a user gives replaces its default.
  const SamplingOptions& default_sampling() const { return default_sampling_; }
  // With several ranks, that of rank 0, which belongs to them.
  StepRunner& runner() { return *runner_; }
  // Null: there is one device.
  const RankGroup* ranks() const { return ranks_.get(); }
  RankGroup* ranks() { return ranks_.get(); }
  Device& device() { return *device_; }
  Instance& instance() { return *instance_; }
  PipelineStore& pipelines() { return *pipelines_; }
  // Null without SessionOptions::prepare_steps.
  const StepPreparation* preparation() const { return preparation_.get(); }
  const MemoryPlan& memory() const { return memory_; }
  const SessionOptions& options() const { return options_; }

 private:
  explicit Session(const SessionOptions& options) : options_(options) {}
  Status load(std::unique_ptr<ModelFile> file);
  Status open_text();
  Status open_device();
  void start_preparation();

  SessionOptions options_;
  std::unique_ptr<Instance> instance_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PipelineStore> pipelines_;
  std::unique_ptr<ModelFile> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Result<std::unique_ptr<ChatTemplate>> chat_template_ =
      Error{ErrorKind::kUnsupported, "this model has no vocabulary, so it cannot chat"};
  SamplingOptions default_sampling_;
  MemoryPlan memory_;
  std::unique_ptr<Model> model_;
  std::shared_ptr<const SharedRowsList> shared_rows_;  // that runners of ranks use
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<CompanionModel> draft_;              // null: there is none
  std::unique_ptr<CompanionModel> amateur_;            // null: there is none
  std::unique_ptr<AmateurExecutor> amateur_executor_;  // if there is one
  std::unique_ptr<RankGroup> ranks_;                   // null: there is one device
  std::unique_ptr<StepPreparation> preparation_;       // null: there is none
  std::unique_ptr<Engine> engine_;
};

}  // namespace hearth
