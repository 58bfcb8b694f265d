// hearth devices: every Vulkan device, what it can do, which one is chosen and why others are
// refused.
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/device_caps.h"
#include "runtime/device_select.h"
#include "runtime/host/printable.h"
#include "runtime/instance.h"
#include "runtime/memory.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"

namespace hearth {
namespace {

std::string subgroup_text(const DeviceCaps& caps) {
  if (caps.min_subgroup_size == caps.max_subgroup_size)
    return fmt::format("{}", caps.subgroup_size);
  return fmt::format("{} ({} to {})", caps.subgroup_size, caps.min_subgroup_size,
                     caps.max_subgroup_size);
}

std::string coopmat_text(const CoopmatShape& shape) {
  return fmt::format("{}x{}x{} {}->{}", shape.m, shape.n, shape.k, scalar_type_name(shape.a),
                     scalar_type_name(shape.result));
}

std::vector<std::string> coopmat_texts(const DeviceCaps& caps) {
  std::vector<std::string> texts;
  for (const CoopmatShape& shape : caps.coopmat_shapes) texts.push_back(coopmat_text(shape));
  return texts;
}

nlohmann::json to_json(const DeviceCaps& caps, bool chosen) {
  const auto reason = refusal(caps);
  return {
      {"index", caps.index},
      {"name", caps.name},
      {"type", device_type_name(caps.type)},
      {"driver", caps.driver},
      {"api", fmt::format("{}.{}.{}", caps.api_major, caps.api_minor, caps.api_patch)},
      {"memory_bytes", caps.memory_bytes()},
      {"free_bytes", caps.free_bytes()},
      {"max_allocation_bytes", caps.limits.max_allocation_bytes},
      {"shared_bytes", caps.limits.max_shared_bytes},
      {"subgroup", caps.subgroup_size},
      {"subgroup_min", caps.min_subgroup_size},
      {"subgroup_max", caps.max_subgroup_size},
      {"transfer_queue", caps.queues.transfer >= 0},
      {"features", feature_names(caps.features)},
      {"coopmat", coopmat_texts(caps)},
      {"chosen", chosen},
      {"refused", reason ? nlohmann::json(*reason) : nlohmann::json(nullptr)},
  };
}

void print(const DeviceCaps& caps, bool chosen) {
  fmt::print("{}: {}{}\n", caps.index, printable(caps.name), chosen ? "  (chosen)" : "");
  if (const auto reason = refusal(caps)) fmt::print("   refused:  {}\n", *reason);
  fmt::print("   type:     {}, Vulkan {}.{}.{}, driver {}\n", device_type_name(caps.type),
             caps.api_major, caps.api_minor, caps.api_patch, printable(caps.driver));
  fmt::print("   memory:   {}, {} free, at most {} per allocation\n",
             format_bytes(caps.memory_bytes()), format_bytes(caps.free_bytes()),
             format_bytes(caps.limits.max_allocation_bytes));
  fmt::print("   subgroup: {}, shared memory {}, transfer queue {}\n", subgroup_text(caps),
             format_bytes(caps.limits.max_shared_bytes), caps.queues.transfer >= 0 ? "yes" : "no");
  fmt::print("   features: {}\n", fmt::join(feature_names(caps.features), " "));
  if (!caps.coopmat_shapes.empty())
    fmt::print("   matrices: {}\n", fmt::join(coopmat_texts(caps), ", "));
}

class DevicesCommand : public Command {
 public:
  DevicesCommand()
      : Command(CommandGroup::kMeasure, "devices",
                "List Vulkan devices and show which one is used") {}

  void declare(Options& options) override {
    options.example("hearth devices -d nvidia");
    options.add("-d,--device NAME", &wanted_, "Device to choose, by index or part of its name");
    add_json_option(options, &json_);
  }

  Status run() override {
    HEARTH_ASSIGN(const auto instance, Instance::create({}));
    const auto& devices = instance->devices();
    const Result<size_t> chosen = select_device(devices, wanted_);
    const auto is_chosen = [&](size_t i) { return chosen.ok() && *chosen == i; };
    if (json_) {
      nlohmann::json list = nlohmann::json::array();
      for (size_t i = 0; i < devices.size(); ++i) list.push_back(to_json(devices[i], is_chosen(i)));
      fmt::print("{}\n", nlohmann::json{{"devices", list}}.dump(2));
    } else {
      for (size_t i = 0; i < devices.size(); ++i) print(devices[i], is_chosen(i));
    }
    if (!chosen.ok()) return chosen.error();
    return {};
  }

 private:
  bool json_ = false;
  std::string wanted_;
};

DevicesCommand devices_command;

}  // namespace
}  // namespace hearth
