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

Status warm_up(WarmUpExecutor& executor, const EngineOptions& options,
               std::span<const Policy> policies, const ReplayInput& input, Progress& progress) {
  const size_t count = std::min<size_t>(input.trace.requests.size(),
                                        kRequestsPerSequence * options.limits.max_sequences);
  std::vector<GenerationRequest> requests;
  for (size_t i = 0; i < count; ++i) requests.push_back(replay_request(input, i));
  for (size_t i = 0; i < policies.size(); ++i) {
    EngineOptions with_policy = options;
    with_policy.policy = policies[i];
    Engine engine(executor, nullptr, with_policy);
    HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(requests));
    for (size_t ended = 0; ended < streams.size(); ++ended) {
      while (streams[ended].next()) {
      }
      progress.update(i * streams.size() + ended + 1, policies.size() * streams.size(),
                      fmt::format("policy {} of {}", i + 1, policies.size()));
    }
    if (engine.state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, engine.failure()};
  }
  return {};
}

}  // namespace hearth
