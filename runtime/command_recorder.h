// Records commands once; the result can be submitted any number of times (queue.h). Hazards places
// barriers according to the accesses of each command, which follow from a kernel's arguments
// (kernel_arguments.h). What a kernel accesses by other ways must be listed: an incomplete list is
// the only way to get a race.
//
// A command buffer starts with a barrier against all earlier work on its queue and ends with one
// that makes its writes visible to the host, so that submissions need no synchronization beyond
// their order. One thread per recorder.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chain.h"
#include "runtime/hazards.h"
#include "runtime/kernel_arguments.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;
class GpuTimer;
class Pipeline;
class Queue;
struct LoggedDispatch;

// Recorded commands. Move-only. REQUIRES: when it is destroyed, the GPU is done with it (or hand it
// to Timeline::release_after()); the buffers and pipelines it uses outlive every run.
class CommandBuffer {
 public:
  CommandBuffer() = default;
  ~CommandBuffer() { reset(); }
  CommandBuffer(CommandBuffer&& other) noexcept { *this = std::move(other); }
  CommandBuffer& operator=(CommandBuffer&& other) noexcept;
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;

  VkCommandBuffer handle() const { return handle_; }
  uint32_t dispatches() const { return dispatches_; }
  uint32_t barriers() const { return barriers_; }  // without the first and the last

 private:
  friend class CommandRecorder;
  void reset();

  Device* device_ = nullptr;
  VkCommandPool pool_ = nullptr;  // one per buffer, so recorders on different threads share nothing
  VkCommandBuffer handle_ = nullptr;
  uint32_t dispatches_ = 0, barriers_ = 0;
};

struct GroupCount {
  uint32_t x = 1, y = 1, z = 1;

  bool operator==(const GroupCount&) const = default;
};

struct Dispatch {
  const Pipeline& pipeline;
  KernelArguments arguments;
  GroupCount groups;
  // It changes what outlives the recording and must not run twice. No kernel of a chain may give up
  // waiting once it has run, so it waits at a barrier, and so does everything after it.
  bool lasting = false;
  std::string_view label = {};  // in GPU times and captures; default: the kernel's name
};

enum class Timing {
  kEachCommand,  // one span per command
  kWhole,        // one span from the first command to the last, named after the buffer
};

// Between the section and the label of a command (CommandRecorder::set_section).
inline constexpr std::string_view kSectionSeparator = ": ";

// Kinds of work, as a set. A barrier names only the kinds that it separates, because wider ones
// cost more.
enum StageBits : uint32_t { kStageCompute = 1, kStageTransfer = 2 };

struct RecorderOptions {
  std::string_view name = "commands";
  Queue* queue = nullptr;  // null: the device's compute queue
  GpuTimer* timer = nullptr;
  Timing timing = Timing::kEachCommand;
  bool serial = false;  // a barrier before every command, for profiling
  // Kernels that can do so wait for each other on the GPU instead of at barriers (chain.h).
  bool chained = false;
  // A chained dispatch with more workgroups than this counts them in a place of its own (chain.h).
  uint32_t large_dispatch = Chain::kDefaultLargeDispatch;
  // Kernels see whether a wait has failed, in this recording or an earlier one (chain_guard.h).
  bool guarded = chained;
};

class CommandRecorder {
 public:
  static Result<CommandRecorder> begin(Device& device, const RecorderOptions& options = {});
  // Records nothing: for finding out what a recording would ask of a PipelineCollector, and whether
  // its slices are within their buffers. It must not be finished. Dispatches are added to `log`, if
  // there is one (dispatch_log.h).
  static CommandRecorder dry(std::vector<LoggedDispatch>* log = nullptr) {
    CommandRecorder recorder(nullptr, {});
    recorder.log_ = log;
    return recorder;
  }
  CommandRecorder(CommandRecorder&&) = default;
  CommandRecorder& operator=(CommandRecorder&&) = default;
  CommandRecorder(const CommandRecorder&) = delete;
  CommandRecorder& operator=(const CommandRecorder&) = delete;
  ~CommandRecorder() = default;

  void dispatch(const Dispatch& dispatch);
  // REQUIRES: slices of equal size that do not overlap.
  void copy(const BufferSlice& from, const BufferSlice& to);
  // Sets every 32-bit word. REQUIRES: offset and size are multiples of four.
  void fill(const BufferSlice& slice, uint32_t word);

  // Labels of the following commands become "section: label", so that different uses of one kernel
  // can be told apart; an empty section ends this. REQUIRES: `section` outlives the recorder.
  void set_section(std::string_view section) { section_ = section; }

  // An error once a command was given a slice that is not within its buffer; such commands are left
  // out.
  const Status& status() const { return status_; }
  // Ends recording; returns status() if that is an error. REQUIRES: nothing is recorded afterwards.
  Result<CommandBuffer> finish();

 private:
  CommandRecorder(Device* device, const RecorderOptions& options)
      : device_(device), timer_(options.timer), timing_(options.timing), serial_(options.serial) {}
  // Whether all slices are within their buffers; if not, sets status_.
  bool check(std::span<const Access> accesses, std::string_view label);
  void begin_command(std::span<const Access> accesses, std::string_view label, uint32_t stages,
                     bool chains = false);
  void end_command();
  void barrier(uint32_t after, uint32_t before);
  bool is_dry() const { return device_ == nullptr; }
  bool times(Timing timing) const { return timer_ != nullptr && timing_ == timing; }

  Device* device_;
  std::vector<LoggedDispatch>* log_ = nullptr;  // only if dry
  GpuTimer* timer_;
  Timing timing_;
  bool serial_;
  bool transfer_only_ = false;
  bool labels_ = false;
  std::string_view section_;
  Status status_;
  CommandBuffer buffer_;
  Hazards hazards_;
  Chain chain_;
  bool clearing_counts_ = false;  // the chain's counters, since the last barrier
  uint32_t used_stages_ = 0;      // of all commands so far
  uint32_t covered_stages_ = 0;   // that see everything before the last barrier
  VkPipeline bound_ = nullptr;
};

}  // namespace hearth
