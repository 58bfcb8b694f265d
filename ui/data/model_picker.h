// The model, device and context the user selected, and an estimate of the memory they need before
// anything is loaded. Devices are listed and model headers read in the background. Call only from
// the window's thread.
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
  bool best = false;    // the default choice
};

// What the user selected.
struct ModelSelection {
  std::string model;     // a path or a name as -m takes it; empty: the built-in model
  int device = -1;       // index into devices(); -1: the best
  uint32_t context = 0;  // tokens; 0: the model's own, or as much as fits
  uint32_t sequences = 16;
  KvFormat kv = KvFormat::kF16;
  uint64_t swap_bytes = 0;  // of host memory, for swapped-out blocks
  bool operator==(const ModelSelection&) const = default;
};

struct ModelEstimate {
  ModelSelection selection;
  std::string failure;  // what is wrong with the file; then the rest is empty
  std::string name, architecture;
  uint64_t parameters = 0;
  uint32_t model_context = 0;  // the model's own maximum
  bool has_device = false;     // false: there is no memory plan
  MemoryPlan memory;           // for the context that loading would use
  // No context was selected, and the model's own does not fit.
  bool context_shortened = false;

  bool fits() const { return failure.empty() && has_device && memory.fits; }
  uint64_t kv_bytes() const { return memory.kv_blocks * memory.kv_bytes_per_block; }
};

// Plans memory exactly as loading does, but from the file's header alone. `device` is null if none
// is usable. Blocks.
ModelEstimate estimate_model(const ModelSelection& selection, const DeviceCaps* device);
std::vector<DeviceEntry> device_entries(const std::vector<DeviceCaps>& devices);

class ModelPicker {
 public:
  using ListDevices = std::function<Result<std::vector<DeviceCaps>>()>;
  // `list` returns the devices; by default those of this machine.
  explicit ModelPicker(ListDevices list = {});

  ModelSelection selection;  // may be changed at any time
  // In the form -d takes; becomes the selection once devices are listed.
  std::string requested_device;

  // Call once per frame. Estimates again if the selection changed.
  void update();

  bool listing() const { return !listed_; }
  const std::vector<DeviceEntry>& devices() const { return entries_; }
  const std::string& devices_failure() const { return devices_failure_; }
  // The device that would be used; nothing if none is usable.
  std::optional<size_t> chosen_device() const;
  // The selected device in the form -d takes; empty if none is selected.
  std::string device_option() const;

  // The estimate for the current selection; null while it is being computed.
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
