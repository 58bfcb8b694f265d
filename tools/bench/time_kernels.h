// hearth bench --kernels: every kernel on its own, compared with the device's measured ceilings.
#pragma once

#include <string>

#include "runtime/result.h"
#include "tools/bench/bench_report.h"

namespace hearth {

// `device` as -d takes it; only families with `filter` in their name.
Status time_kernels(const std::string& device, const std::string& filter, BenchReport& report);

}  // namespace hearth
