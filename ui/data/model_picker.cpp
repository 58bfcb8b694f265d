#include "ui/data/model_picker.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "engine/model_library.h"
#include "engine/open_model_file.h"
#include "engine/session.h"
#include "runtime/device_select.h"
#include "runtime/instance.h"

namespace hearth {
namespace {

Result<std::vector<DeviceCaps>> list_devices() {
  HEARTH_ASSIGN(const auto instance, Instance::create({}));
  return instance->devices();
}

Status fill_in(const DeviceCaps* device, ModelEstimate& estimate) {
  const ModelSelection& selection = estimate.selection;
  HEARTH_ASSIGN(const LibraryModel found, find_model(selection.model));
  // Reading a pipe or a device might never end.
  std::error_code error;
  if (!found.path.empty() && !std::filesystem::is_regular_file(found.path, error) &&
      !std::filesystem::is_directory(found.path, error))
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: neither a file nor a folder", found.path.string())};
  HEARTH_ASSIGN(const auto file, open_model_file(selection.model));
  HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
  estimate.name = file->name();
  estimate.architecture = plan.architecture->name();
  estimate.parameters = plan.parameters;
  estimate.model_context = plan.config.context;
  if (device == nullptr) return {};
  estimate.has_device = true;
  const SessionOptions options{.context = selection.context,
                               .max_sequences = selection.sequences,
                               .swap_bytes = selection.swap_bytes,
                               .kv = selection.kv};
  StepLimits limits = step_limits(options, *device, plan.config.context);
  const auto plan_for = [&] {
    return plan_memory(*device, bytes_to_plan_with(*device, device->free_bytes(), options), plan,
                       {.limits = limits});
  };
  estimate.memory = plan_for();
  constexpr uint32_t kShortestContext = 256;  // the same as in Session
  if (!estimate.memory.fits && selection.context == 0 &&
      estimate.memory.max_context >= kShortestContext) {
    limits.context = estimate.memory.max_context;
    estimate.memory = plan_for();
    estimate.context_shortened = true;
  }
  return {};
}

}  // namespace

ModelEstimate estimate_model(const ModelSelection& selection, const DeviceCaps* device) {
  ModelEstimate estimate{.selection = selection};
  if (const Status status = fill_in(device, estimate); !status.ok())
    estimate.failure = status.error().message;
  return estimate;
}

std::vector<DeviceEntry> device_entries(const std::vector<DeviceCaps>& devices) {
  std::vector<DeviceEntry> entries;
  const Result<size_t> best = select_device(devices, {});
  for (size_t i = 0; i < devices.size(); ++i)
    entries.push_back({.name = devices[i].name,
                       .type = std::string(device_type_name(devices[i].type)),
                       .driver = devices[i].driver,
                       .memory_bytes = devices[i].memory_bytes(),
                       .free_bytes = devices[i].free_bytes(),
                       .refused = refusal(devices[i]).value_or(""),
                       .best = best.ok() && *best == i});
  return entries;
}

ModelPicker::ModelPicker(ListDevices list) : list_(list ? std::move(list) : list_devices) {}

std::optional<size_t> ModelPicker::chosen_device() const {
  if (selection.device >= 0) {
    const auto index = static_cast<size_t>(selection.device);
    return index < entries_.size() && entries_[index].refused.empty() ? std::optional(index)
                                                                      : std::nullopt;
  }
  const auto best = std::ranges::find_if(entries_, &DeviceEntry::best);
  if (best == entries_.end()) return std::nullopt;
  return static_cast<size_t>(best - entries_.begin());
}

std::string ModelPicker::device_option() const {
  const std::optional<size_t> chosen = chosen_device();
  return selection.device >= 0 && chosen ? std::to_string(caps_[*chosen].index) : std::string();
}

const ModelEstimate* ModelPicker::estimate() const {
  return estimate_ && estimate_->selection == selection ? &*estimate_ : nullptr;
}

void ModelPicker::update() {
  if (!started_listing_) {
    started_listing_ = true;
    listing_.start(list_);
  }
  if (auto found = listing_.take()) {
    listed_ = true;
    if (found->ok())
      caps_ = std::move(**found);
    else
      devices_failure_ = found->error().message;
    entries_ = device_entries(caps_);
    if (found->ok() && caps_.empty()) devices_failure_ = "no Vulkan device found";
    if (const Result<size_t> wanted = select_device(caps_, requested_device);
        !requested_device.empty() && wanted.ok())
      selection.device = static_cast<int>(*wanted);
  }
  if (std::optional<ModelEstimate> done = estimating_.take()) estimate_ = *std::move(done);
  if (!listed_ || estimating_.busy() || estimate() != nullptr) return;
  std::optional<DeviceCaps> device;
  if (const std::optional<size_t> chosen = chosen_device()) device = caps_[*chosen];
  estimating_.start([selection = selection, device] {
    return estimate_model(selection, device ? &*device : nullptr);
  });
}

}  // namespace hearth
