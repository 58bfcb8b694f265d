// The engine's metrics in Prometheus' text format. Pure.
#pragma once

#include <string>

#include "engine/metrics.h"

namespace hearth {

std::string prometheus_text(const Metrics& metrics);

}  // namespace hearth
