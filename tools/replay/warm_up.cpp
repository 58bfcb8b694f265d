#include "tools/replay/warm_up.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

// Requests per sequence of the batch: enough to meet the buckets of a long trace, and few enough
// that planning the skipped steps takes next to no time.
constexpr size_t kRequestsPerSequence = 16;

}  // namespace

Status warm_up(WarmUpExecutor& executor, std::span<const EngineOptions> engines,
               const ReplayInput& input, Progress& progress) {
  for (size_t i = 0; i < engines.size(); ++i) {
    const size_t count = std::min<size_t>(input.trace.requests.size(),
                                          kRequestsPerSequence * engines[i].limits.max_sequences);
    std::vector<GenerationRequest> requests;
    for (size_t k = 0; k < count; ++k) requests.push_back(replay_request(input, k));
    Engine engine(executor, nullptr, engines[i]);
    HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
    for (size_t ended = 0; ended < streams.size(); ++ended) {
      while (streams[ended].next()) {
      }
      progress.update(i * streams.size() + ended + 1, engines.size() * streams.size(),
                      fmt::format("replay {} of {}", i + 1, engines.size()));
    }
    if (engine.state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, engine.failure()};
  }
  return {};
}

}  // namespace hearth
