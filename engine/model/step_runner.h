// Runs steps of a model. Owns the KV pool, the activations, and a recorded command buffer per
// bucket of step sizes, which is replayed. For one thread, except where noted. Steps run in the
// order of submission, and two may be in flight: the next one is prepared while the last one runs.
//
// With a StepPreparation a step never waits for a compiler: as long as the kernels of its bucket
// are being compiled, it runs in a larger bucket whose kernels are ready.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/activations.h"
#include "engine/model/block_mover.h"
#include "engine/model/dealt_mover.h"
#include "engine/model/hidden_store.h"
#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "engine/model/step_batch.h"
#include "engine/model/step_boundary.h"
#include "engine/model/step_bucket_list.h"
#include "engine/model/step_executor.h"
#include "engine/model/step_inputs.h"
#include "engine/model/step_meetings.h"
#include "engine/model/step_planner.h"
#include "engine/model/step_preparation.h"
#include "engine/program/record.h"
#include "params/sampling.h"
#include "runtime/chain_guard.h"
#include "runtime/gpu_timer.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// Plans steps in another way than for the runner's device. For tests, which run the kernels of
// other devices.
struct StepPlanning {
  std::optional<DeviceCaps> caps = {};       // instead of the device's
  bool fusion = true;                        // false: every op has its own kernels
  std::function<void(StepPlan&)> edit = {};  // called with every plan before it is recorded
};

struct StepRunnerOptions {
  StepLimits limits;
  uint32_t slots = 16;  // most running sequences; each has a place for its sampled id
  // Places for sampled ids beyond those of the slots, for the steps of a draft model.
  uint32_t drafted_places = 0;
  uint32_t kv_blocks = 0;    // of all ranks that share a pool of them (ops/block_deal.h)
  uint32_t swap_blocks = 0;  // in host memory, likewise
  // Steps of mixed sizes fall into thousands of buckets. Beyond this number the least recently used
  // recording is dropped, and recorded again if its size comes up again.
  size_t most_recordings = 512;
  // Logits of another model's runner, [logit rows, vocabulary] f32 with the same vocabulary, for
  // rows that are mixed with them; submit its step first. Must outlive the runner.
  const Buffer* other_logits = nullptr;
  // Another runner's sampled_ids(), which this runner's steps read and write instead of having
  // their own: they see what its steps have sampled, and the other way round. Must outlive the
  // runner.
  const Buffer* sampled_ids = nullptr;
  const StepPlanning* planning = nullptr;  // null: as usual. Must outlive the runner.
  RankRows rows = {};  // memory that ranks share for hidden rows. Must outlive the runner.
  // Another rank waits for every step, so that it must be noticed at once when one is done
  // (Timeline::wait_promptly()).
  bool waits_promptly = false;
  // Where the runner meets those of the other ranks within its steps, if
  // ModelConfig::meets_ranks(). Must outlive the last step.
  RankExchange* exchange = nullptr;
};

// Device memory per slot: the sampled id, mirostat's state, the token history and the biases.
uint64_t slot_bytes();

class StepRunner final : public StepExecutor, private ChainUser {
 public:
  static Result<std::unique_ptr<StepRunner>> create(Device& device, PipelineStore& pipelines,
                                                    const Model& model,
                                                    const StepRunnerOptions& options);
  // Waits for the GPU.
  ~StepRunner() override;
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Records the step and compiles its kernels, so that submit() of such a step need not.
  Status prepare(const StepBatch& batch);
  // The pipelines that steps of a bucket use. Any thread.
  std::vector<PipelineInfo> pipelines_of(const StepBucket& bucket) const;
  // Without one, or if ranks meet within a step, submit() compiles the kernels that it needs.
  // `preparation` outlives the runner's last step.
  void set_preparation(StepPreparation* preparation) { preparation_ = preparation; }
  // Steps that had to wait for a compiler although there is a preparation.
  uint64_t stalled_steps() const { return stalled_steps_; }
  Result<StepTicket> submit(const StepBatch& batch) override;
  Result<StepOutcome> wait(const StepTicket& ticket) override;

  // Logits of the last step: [logit rows, vocab]. REQUIRES: it was waited for, and no other was
  // submitted after it.
  Result<std::vector<float>> read_logits(uint32_t logit_rows);
  // The same on the device, for another runner's StepRunnerOptions::other_logits.
  const Buffer& logits() const { return activations_.logits; }
  // Sets StepRunnerOptions::other_logits. REQUIRES: no step was recorded yet.
  void set_other_logits(const Buffer& logits) { options_.other_logits = &logits; }
  // The last sampled id of every place, on the device: those of the slots come first.
  const Buffer& sampled_ids() const {
    return options_.sampled_ids != nullptr ? *options_.sampled_ids : sampled_ids_;
  }

  Status fork_blocks(std::span<const BlockMove> moves) override;
  Status swap_out(std::span<const BlockMove> moves) override;
  Status swap_in(std::span<const BlockMove> moves) override;
  Result<SwapTraffic> swap_traffic() override;
  Status set_history(uint32_t slot, std::span<const params::TokenCount> tokens) override;
  Status set_biases(uint32_t slot, std::span<const params::TokenBias> biases) override;
  Status reserve_hidden(uint32_t slot, uint32_t tokens) override;

  // Runs the step with a barrier and a timer around every command and returns their times, labelled
  // "part: kernel" with the parts of program/op.h. REQUIRES: no other step is in flight.
  Result<std::vector<GpuSpan>> profile(const StepBatch& batch);

  const KvCache& kv() const { return kv_; }
  const StepRunnerOptions& options() const { return options_; }
  size_t recorded_steps() const { return recorded_.size(); }

 private:
  // What is kept of a plan once its commands are recorded.
  struct Recorded {
    explicit Recorded(const StepPlan& plan)
        : bucket(plan.bucket), attention(plan.attention), layout(plan.layout) {}

    StepBucket bucket;
    AttentionPlan attention;
    StepLayout layout;
    // The step's segments, one command buffer each: one, or, if ranks meet within it, several. The
    // ranks meet after each but the last one; a rank that does not sample ends with a meeting.
    std::array<std::vector<CommandBuffer>, StepInputs::kCopies> commands;
    std::vector<RankMeeting> meetings;
    uint64_t last_use = 0;  // as a step number
  };
  StepRunner(Device& device, PipelineStore& pipelines, const Model& model,
             const StepRunnerOptions& options);
  // The device that steps are planned for.
  const DeviceCaps& planned_caps() const;
  Status allocate();
  Status allocate_pools();
  Status allocate_hidden();
  // The recording of a bucket; compiles what it needs.
  Result<const Recorded*> recorded(const StepBucket& bucket);
  // The same, or that of a larger bucket if some kernels are not compiled yet.
  Result<const Recorded*> recorded_or_larger(const StepBucket& bucket);
  // The recording of a bucket if its kernels are compiled, else null.
  Result<const Recorded*> recorded_if_ready(const StepBucket& bucket);
  Result<const Recorded*> record_with(PipelineStore& pipelines, const StepBucket& bucket);
  const Recorded* cheapest_recorded(const StepBucket& bucket) const;
  void make_room_for_recording();
  // `timer` is for profiling.
  Result<std::vector<CommandBuffer>> record(PipelineStore& pipelines, const StepPlan& plan,
                                            size_t copy, GpuTimer* timer = nullptr);
  struct Recording {
    CommandRecorder& recorder;
    PipelineStore& pipelines;
    const StepPlan& plan;
    size_t copy = 0;
  };
  // Where hidden states go, in steps that pool, keep or compare them.
  struct HiddenOutputs {
    const Buffer& pooled;
    const Buffer& similarity;
    HiddenPages pages;
  };
  Status record_segment(const Recording& recording, std::span<const PlanSegment> segments,
                        size_t index, const HiddenOutputs& hidden) const;
  Status record_sampling(const Recording& recording) const;
  StepBuffers buffers(size_t copy, const HiddenOutputs& hidden) const;
  const Buffer& value_buffer(Value value) const;
  // Whether there is anything to run after the last meeting.
  bool has_commands(const PlanSegment& segment) const;
  // Submits the segments of a step, and meets the other ranks in between.
  Status run_segments(const Recorded& step, size_t copy);
  // Waits until nothing uses a copy any more, and its step has run as it should.
  Status finish(size_t copy);
  // Once a wait of a chain has failed, drops all recordings and clears what kernels left behind.
  Status leave_failed_chain();
  Status rerun(size_t copy) override;
  Result<StepTicket> submit(const StepBatch& batch, const Recorded& step);
  Status check(const StepBatch& batch) const;
  // Whether all ids that the step reads or writes on the device have a place there.
  Status check_places(const StepBatch& batch) const;
  // Whether everything that sampling rows and commits refer to is in the batch.
  Status check_extras(const StepBatch& batch) const;
  // Copies `bytes` to the device before the next step.
  Status upload(const BufferSlice& to, std::span<const std::byte> bytes);

  Device& device_;
  PipelineStore& pipelines_;
  const Model& model_;
  StepRunnerOptions options_;
  std::optional<StepPlanner> planner_;  // once the buffers are allocated

  KvCache kv_, host_kv_;
  Activations activations_;
  StepInputs inputs_;
  StepBoundary boundary_;
  StepMeetings meetings_;
  Buffer sampled_ids_;  // unless options_.sampled_ids is another runner's
  Buffer history_lengths_, history_, biases_, mirostat_;
  // The sampled tokens, [logit rows], in host memory, where the step's last kernel writes them.
  struct Sampled {
    Buffer results, top, mirostat;
  };
  std::array<Sampled, StepInputs::kCopies> sampled_;
  std::array<Buffer, StepInputs::kCopies> pooled_;  // [step_pools(), width] f32, in host memory
  // Made by the first sequence that wants hidden states kept.
  std::optional<HiddenStore> hidden_;
  std::array<Buffer, StepInputs::kCopies> similarity_;  // [logit rows, parts] f32, in host memory
  std::unique_ptr<BlockMover> forks_, swaps_out_, swaps_in_;
  std::optional<DealtMover> dealt_;  // if ranks share a pool of blocks
  std::map<StepBucket, Recorded> recorded_;
  StepPreparation* preparation_ = nullptr;
  // Buckets that could not be recorded, and the kernels that were missing.
  std::map<StepBucket, std::vector<PipelineInfo>> waiting_;
  uint64_t stalled_steps_ = 0;
  uint64_t steps_ = 0;
  std::array<TimelinePoint, StepInputs::kCopies> last_use_;
  std::array<StepBucket, StepInputs::kCopies> submitted_;  // the bucket that a copy's step ran in
  bool chained_;                                           // recordings are chains
  size_t next_copy_ = 0;
};

}  // namespace hearth
