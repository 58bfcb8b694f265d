// Plans for a GPU with matrix units that run on any device: their kernels are replaced by those
// with emulated fragments (shaders/common/fragment_emulation.glsl), of the same tiles. What is
// fused, which rows are f16, and how k is split stays as planned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "engine/program/plan.h"
#include "params/matmul_direct.h"
#include "runtime/device_caps.h"
#include "runtime/rounding.h"

namespace hearth::testing {

// An H200, as far as matrix units are concerned, otherwise like `device`.
inline DeviceCaps gpu_with_matrix_units(DeviceCaps device) {
  device.type = DeviceType::kDiscrete;
  device.vendor_id = 0x10de;
  device.device_id = 0x2335;
  device.driver_id = DriverId::kNvidia;
  device.features.float16 = device.features.integer_dot = true;
  device.features.coopmat = device.features.lane_fragments = true;
  device.coopmat_shapes = {{.m = 16,
                            .n = 8,
                            .k = 16,
                            .a = ScalarType::kF16,
                            .b = ScalarType::kF16,
                            .c = ScalarType::kF32,
                            .result = ScalarType::kF32}};
  // More than lavapipe has: matmul_team plans for larger workgroups than small models need.
  device.limits.max_group_invocations = 1024;
  device.limits.max_shared_bytes = 40 << 10;
  device.limits.multiprocessors = 8;
  return device;
}

// Replaces kernels for subgroups of 32 with known fragments; all others run as they are.
class KernelEmulator {
 public:
  // `lanes`: of the device's subgroups.
  explicit KernelEmulator(uint32_t lanes) : lanes_(lanes) {}

  void replace(StepPlan& plan) const {
    replace(plan.attention.few);
    if (plan.attention.many) replace(*plan.attention.many);
    for (PlannedOp& op : plan.ops) {
      if (auto* product = op.as<PlannedProduct>()) {
        for (MatmulChoice& matmul : product->segments) {
          EXPECT_FALSE(matmul.plan.rest || matmul.plan.shared) << "not emulated";
          replace(matmul.plan.multiply);
        }
      } else if (auto* experts = op.as<PlannedExperts>()) {
        for (ExpertProduct* expert : {&experts->plan.gate_up, &experts->plan.down}) {
          replace(expert->kernel);
          if (expert->all_rows)
            expert->kernel.pipeline.constants.set("kLaneExperts",
                                                  divide_up(experts->op.shape.experts, lanes_));
        }
      }
    }
  }

 private:
  static constexpr uint32_t kLanes = 32, kMostSubgroups = 4;  // of an emulated kernel

  void replace(KernelPlan& kernel) const {
    PipelineInfo& pipeline = kernel.pipeline;
    const std::string_view name = pipeline.kernel;
    const auto is = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (is("_coopmat.")) {
      use_direct(pipeline);
    } else if (is("_direct") || is("_lanes") || is("_wide") || is("matmul_team.") ||
               is("experts_few") || is("experts_one_row")) {
      // "attention_direct_sinks.f16" becomes "attention_direct_emulated_sinks.f16".
      const size_t end = std::min(name.find("_sinks"), name.find('.'));
      pipeline.kernel.insert(end, "_emulated");
    } else {
      return;
    }
    KernelConstants& constants = pipeline.constants;
    if (pipeline.kernel.starts_with("attention_direct")) {
      // Any number of them divides the keys.
      constants.set("kSubgroups", std::min(constants["kSubgroups"], kMostSubgroups));
      constants.set("kSubgroupSize", lanes_);
    }
    EXPECT_LE(constants["kSubgroups"], kMostSubgroups) << pipeline.kernel;
    constants.set("kWorkgroupSize", constants["kSubgroups"] * kLanes);
    pipeline.subgroup_size = lanes_;
  }

  // matmul_coopmat cannot be emulated: its fragments have no known layout. matmul_direct has the
  // same tiles.
  static void use_direct(PipelineInfo& pipeline) {
    const KernelConstants& tile = pipeline.constants;
    EXPECT_EQ(tile["kSubgroupRows"], tile["kTileRows"]) << "no tile of matmul_direct";
    const size_t begin = pipeline.kernel.find("_coopmat");
    pipeline.kernel.replace(begin, std::string_view("_coopmat").size(), "_direct_emulated");
    pipeline.constants = params::MatmulDirectConstants{.kTileRows = tile["kTileRows"],
                                                       .kTileOutputs = tile["kTileOutputs"],
                                                       .kSplits = tile["kSplits"],
                                                       .kSubgroupOutputs = tile["kSubgroupOutputs"],
                                                       .kSubgroups = tile["kSubgroups"]};
  }

  uint32_t lanes_;
};

}  // namespace hearth::testing
