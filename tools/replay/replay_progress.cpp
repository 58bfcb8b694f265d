#include "tools/replay/replay_progress.h"

#include <utility>

#include <fmt/format.h>

namespace hearth {

ReplayProgress::ReplayProgress(std::string title, const Trace& trace, ProgressOutput output)
    : progress_(std::move(title), std::move(output)),
      requests_(trace.requests.size()),
      tokens_(trace.generated_tokens()) {}

void ReplayProgress::add(const StepRecord& record) {
  finished_ += record.finished.size();
  sampled_ += record.sampled_tokens;
  progress_.update(sampled_, tokens_, fmt::format("{} of {} requests", finished_, requests_));
}

}  // namespace hearth
