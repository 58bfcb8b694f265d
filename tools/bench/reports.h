// The reports of `hearth bench`: JSON with the fields scripts rely on, and tables for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/bench/kernel_bench.h"
#include "tools/bench/model_bench.h"
#include "tools/bench/step_profile.h"

namespace hearth {

nlohmann::json to_json(const Ceilings& ceilings);
nlohmann::json to_json(const KernelTime& time);
nlohmann::json to_json(const ModelTime& time);
nlohmann::json to_json(const StepProfile& profile);

void print_ceilings(const DeviceCaps& caps, const Ceilings& ceilings);
void print_kernel_header();
void print(const KernelTime& time);
void print_model_header();
void print(const ModelTime& time);
void print(const StepProfile& profile);

}  // namespace hearth
