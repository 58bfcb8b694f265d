#include "engine/batch_delivery.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hearth {

void BatchDelivery::join(ActiveRequest& request, uint64_t batch) {
  request.hold(batch);
  ++batches_[batch].open;
}

void BatchDelivery::end(Ended ended, std::vector<Ended>& ready) {
  const auto place = batches_.find(ended.request->batch());
  if (place == batches_.end()) {
    ready.push_back(std::move(ended));
    return;
  }
  Batch& batch = place->second;
  --batch.open;
  const bool complete =
      ended.reason == FinishReason::kStop || ended.reason == FinishReason::kLength;
  (complete ? batch.ended : ready).push_back(std::move(ended));
  if (batch.open > 0) return;
  std::move(batch.ended.begin(), batch.ended.end(), std::back_inserter(ready));
  batches_.erase(place);
}

void BatchDelivery::release(RequestId request, std::vector<Ended>& ready) {
  for (auto& [number, batch] : batches_) {
    const auto held = std::ranges::find_if(
        batch.ended, [&](const Ended& ended) { return ended.request->id() == request; });
    if (held == batch.ended.end()) continue;
    ready.push_back(std::move(*held));
    batch.ended.erase(held);
    return;
  }
}

void BatchDelivery::release(std::vector<Ended>& ready) {
  for (auto& [number, batch] : batches_)
    std::move(batch.ended.begin(), batch.ended.end(), std::back_inserter(ready));
  batches_.clear();
}

}  // namespace hearth
