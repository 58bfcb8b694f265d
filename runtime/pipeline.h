// Compiled kernels. A Pipeline is a kernel of the shader library with specialization constants and
// a subgroup size. A PipelineStore compiles pipelines in parallel, owns them, and stores the
// driver's compiled code on disk between runs and as it grows (pipeline_cache.h). Thread-safe.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel_constants.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;
class PipelineCache;

struct PipelineInfo {
  std::string kernel;  // a name in shader_library()
  KernelConstants constants;
  uint32_t subgroup_size = 0;  // 0: the driver's choice

  auto operator<=>(const PipelineInfo&) const = default;
};

// An error if constants were set that the kernel does not have.
Status check_constants(const PipelineInfo& info);

class Pipeline {
 public:
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  const std::string& name() const { return info_.kernel; }
  const PipelineInfo& info() const { return info_; }
  VkPipeline handle() const { return handle_; }
  VkPipelineLayout layout() const { return layout_; }
  // Whether it waits for earlier kernels on the GPU (chain.h).
  bool chained() const { return chained_; }

 private:
  friend class PipelineStore;
  friend class PipelineCollector;
  Pipeline(Device* device, PipelineInfo info) : device_(device), info_(std::move(info)) {}

  Device* device_;
  PipelineInfo info_;
  VkPipeline handle_ = nullptr;
  VkPipelineLayout layout_ = nullptr;  // owned by the store
  bool chained_ = false;
  bool cached_ = false;  // its code came from the cache
};

// What a driver's compiler says about a pipeline, such as registers or spills. Names differ from
// driver to driver.
struct PipelineStatistic {
  std::string name;
  double value = 0;
};

// REQUIRES: the pipeline is from a store with PipelineStoreOptions::statistics.
Result<std::vector<PipelineStatistic>> read_statistics(Device& device, const Pipeline& pipeline);

struct PipelineStoreOptions {
  // Where compiled pipelines are stored; empty: not at all. See default_cache_directory().
  std::filesystem::path cache_directory;
  // Makes the driver keep what read_statistics() returns. Needs features.pipeline_executable.
  bool statistics = false;
  // Called before a pipeline is compiled, on the thread that does it. For tests.
  std::function<void(const PipelineInfo&)> before_compile;
};

class PipelineStore {
 public:
  static Result<std::unique_ptr<PipelineStore>> create(Device& device,
                                                       const PipelineStoreOptions& options = {});
  // Writes the cache if anything was compiled. REQUIRES: the GPU uses no pipeline.
  virtual ~PipelineStore();
  PipelineStore(const PipelineStore&) = delete;
  PipelineStore& operator=(const PipelineStore&) = delete;

  // Returns the pipeline, and compiles it first if necessary, or waits for the thread that does. It
  // lives as long as the store.
  virtual Result<const Pipeline*> get(const PipelineInfo& info);
  // The pipeline if it has been compiled, else null. Never waits for a compiler.
  const Pipeline* find(const PipelineInfo& info) const;
  // Compiles all that have not been compiled yet, in parallel on the host's cores.
  Status prepare(std::span<const PipelineInfo> infos);
  // Writes the cache now, or only if it has grown enough to be worth it. A failure is logged and
  // otherwise ignored.
  void save();
  void save_if_grown();

  size_t size() const;

 protected:
  PipelineStore();  // for derived classes that compile nothing

 private:
  PipelineStore(Device& device, const PipelineStoreOptions& options);
  Result<std::unique_ptr<Pipeline>> compile(const PipelineInfo& info) const;

  Device* device_ = nullptr;
  PipelineStoreOptions options_;
  VkPipelineLayout layout_ = nullptr;  // push constants only: kernels get addresses, not bindings
  std::unique_ptr<PipelineCache> cache_;
  mutable std::mutex mutex_;
  std::map<PipelineInfo, std::unique_ptr<Pipeline>> pipelines_;
  std::set<PipelineInfo> compiling_;
  std::condition_variable compiled_;  // one of compiling_ is done
};

}  // namespace hearth
