// Which model on which device with which context, and what that would need, before it is loaded.
// Devices are asked and headers read in the background. Of the window's thread alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/ops/paged_kv.h"
#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "ui/data/background_task.h"

namespace hearth {

struct DeviceEntry {
  std::string name, type, driver;
  uint64_t memory_bytes = 0, free_bytes = 0;
  std::string refused;  // why it cannot be used; empty if it can
  bool best = false;    // what is taken without a wish
};

// What was asked about.
struct ModelSelection {
  std::string model;     // a path; empty: the embedded one
  int device = -1;       // of the list; -1: the best
  uint32_t context = 0;  // 0: what the model was made for, or what fits
  uint32_t sequences = 16;
  KvFormat kv = KvFormat::kF16;
  uint64_t swap_bytes = 0;  // of host memory
  bool operator==(const ModelSelection&) const = default;
};

struct ModelEstimate {
  ModelSelection selection;
  std::string failure;  // what is wrong with the file; the rest is empty then
  std::string name, architecture;
  uint64_t parameters = 0;
  uint32_t model_context = 0;  // that the model was made for
  bool has_device = false;     // without one there is no plan
  MemoryPlan memory;           // for the context that would be used
  bool context_shortened =
      false;  // nobody asked for a context, and all of the model's does not fit

  bool fits() const { return failure.empty() && has_device && memory.fits; }
  uint64_t kv_bytes() const { return memory.kv_blocks * memory.kv_bytes_per_block; }
};

// As loading does it, from the header alone. `device` null: none can be used. Blocks.
ModelEstimate estimate_model(const ModelSelection& selection, const DeviceCaps* device);
std::vector<DeviceEntry> device_entries(const std::vector<DeviceCaps>& devices);

class ModelPicker {
 public:
  using ListDevices = std::function<Result<std::vector<DeviceCaps>>()>;
  // Without `list`, the devices of this machine.
  explicit ModelPicker(ListDevices list = {});

  ModelSelection selection;      // change it at will
  std::string requested_device;  // as -d takes it: the wish once devices are listed

  // Once a frame: what changed is looked at again.
  void update();

  bool listing() const { return !listed_; }
  const std::vector<DeviceEntry>& devices() const { return entries_; }
  const std::string& devices_failure() const { return devices_failure_; }
  // The one that would be used; nothing if none can.
  std::optional<size_t> chosen_device() const;
  // What -d takes for it; empty without a wish.
  std::string device_option() const;

  // Of what is wished for now; nothing while it is being worked out.
  const ModelEstimate* estimate() const;

 private:
  ListDevices list_;
  BackgroundTask<Result<std::vector<DeviceCaps>>> listing_;
  bool started_listing_ = false, listed_ = false;
  std::vector<DeviceCaps> caps_;
  std::vector<DeviceEntry> entries_;
  std::string devices_failure_;
  BackgroundTask<ModelEstimate> estimating_;
  std::optional<ModelEstimate> estimate_;
};

}  // namespace hearth
