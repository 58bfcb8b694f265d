// A recording: one JSON file that is a trace for ui.perfetto.dev, and under the key "hearth" holds
// everything the dashboard needs to show the same steps again without an engine.
#pragma once

#include <string>
#include <string_view>

#include "runtime/result.h"
#include "ui/data/view_history.h"

namespace hearth {

// Writes all of the history. A file that cannot be written completely is removed, and one that was
// there before stays. REQUIRES: the history is not empty.
Status write_recording(const ViewHistory& history, const std::string& path);

// Every value is checked, and the error is one line.
Result<ViewHistory> read_recording(const std::string& path);
Result<ViewHistory> parse_recording(std::string_view text);

}  // namespace hearth
