// What an empty conversation shows: the model's name and questions to begin with, or why there is
// no model.
#pragma once

#include "ui/panels/active_model.h"
#include "ui/theme.h"

namespace hearth {

// Returns the question that the user clicked, or null.
const char* draw_welcome(const ActiveModel& active, const Theme& theme);

}  // namespace hearth
