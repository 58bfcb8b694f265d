// A StepRecord as JSON, for /events and for whoever shows a remote engine. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/step_record.h"

namespace hearth {

nlohmann::json step_event(const StepRecord& record);

}  // namespace hearth
