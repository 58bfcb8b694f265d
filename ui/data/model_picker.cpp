#include "ui/data/model_picker.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

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
  const ModelWish& wish = estimate.wish;
  if (!wish.model.empty()) {
    // Pipes and devices would never end.
    std::error_code error;
    if (!std::filesystem::is_regular_file(wish.model, error) &&
        !std::filesystem::is_directory(wish.model, error))
      return Error{ErrorKind::kNotFound, fmt::format("there is no file '{}'", wish.model)};
  }
  HEARTH_ASSIGN(const auto file, open_model_file(wish.model));
  HEARTH_ASSIGN(const ModelPlan plan, plan_model(*file));
  estimate.name = file->name();
  estimate.architecture = plan.architecture->name();
  estimate.parameters = plan.parameters;
  estimate.model_context = plan.config.context;
  if (device == nullptr) return {};
  estimate.has_device = true;
  const SessionOptions options{.context = wish.context,
                               .max_sequences = wish.sequences,
                               .swap_bytes = wish.swap_bytes,
                               .kv = wish.kv};
  StepLimits limits = step_limits(options, *device, plan.config.context);
  const auto plan_for = [&] {
    return plan_memory(*device, bytes_to_plan_with(*device, device->free_bytes(), options), plan,
                       {.limits = limits});
  };
  estimate.memory = plan_for();
  constexpr uint32_t kShortestContext = 256;  // as a session has it
  if (!estimate.memory.fits && wish.context == 0 &&
      estimate.memory.max_context >= kShortestContext) {
    limits.context = estimate.memory.max_context;
    estimate.memory = plan_for();
    estimate.shortened = true;
  }
  return {};
}

}  // namespace

ModelEstimate estimate_model(const ModelWish& wish, const DeviceCaps* device) {
  ModelEstimate estimate{.wish = wish};
  if (const Status status = fill_in(device, estimate); !status.ok())
    estimate.failure = status.error().message;
  return estimate;
}

std::vector<DeviceChoice> device_choices(const std::vector<DeviceCaps>& devices) {
  std::vector<DeviceChoice> choices;
  const Result<size_t> best = select_device(devices, {});
  for (size_t i = 0; i < devices.size(); ++i)
    choices.push_back({.name = devices[i].name,
                       .type = std::string(device_type_name(devices[i].type)),
                       .driver = devices[i].driver,
                       .memory_bytes = devices[i].memory_bytes(),
                       .free_bytes = devices[i].free_bytes(),
                       .refused = refusal(devices[i]).value_or(""),
                       .best = best.ok() && *best == i});
  return choices;
}

ModelPicker::ModelPicker(ListDevices list) : list_(list ? std::move(list) : list_devices) {}

std::optional<size_t> ModelPicker::chosen_device() const {
  if (wish.device >= 0) {
    const auto index = static_cast<size_t>(wish.device);
    return index < choices_.size() && choices_[index].refused.empty() ? std::optional(index)
                                                                      : std::nullopt;
  }
  const auto best = std::ranges::find_if(choices_, &DeviceChoice::best);
  if (best == choices_.end()) return std::nullopt;
  return static_cast<size_t>(best - choices_.begin());
}

std::string ModelPicker::device_option() const {
  const std::optional<size_t> chosen = chosen_device();
  return wish.device >= 0 && chosen ? std::to_string(caps_[*chosen].index) : std::string();
}

const ModelEstimate* ModelPicker::estimate() const {
  return estimate_ && estimate_->wish == wish ? &*estimate_ : nullptr;
}

void ModelPicker::update() {
  if (!asked_) {
    asked_ = true;
    listing_.start(list_);
  }
  if (auto found = listing_.take()) {
    listed_ = true;
    if (found->ok())
      caps_ = std::move(**found);
    else
      devices_failure_ = found->error().message;
    choices_ = device_choices(caps_);
    if (found->ok() && caps_.empty()) devices_failure_ = "there is no Vulkan device";
    if (const Result<size_t> wanted = select_device(caps_, device_wanted);
        !device_wanted.empty() && wanted.ok())
      wish.device = static_cast<int>(*wanted);
  }
  if (std::optional<ModelEstimate> done = estimating_.take()) estimate_ = *std::move(done);
  if (!listed_ || estimating_.busy() || estimate() != nullptr) return;
  std::optional<DeviceCaps> device;
  if (const std::optional<size_t> chosen = chosen_device()) device = caps_[*chosen];
  estimating_.start(
      [wish = wish, device] { return estimate_model(wish, device ? &*device : nullptr); });
}

}  // namespace hearth
