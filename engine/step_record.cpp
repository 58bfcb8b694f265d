#include "engine/step_record.h"

#include <algorithm>

namespace hearth {

void StepRecord::reserve(size_t sequences) {
  members.reserve(sequences);
  for (std::vector<RequestId>* list :
       {&admitted, &preempted_recompute, &preempted_swap, &finished, &cancelled})
    list->reserve(sequences);
  prefix_hits.reserve(sequences);
  arrived.reserve(sequences);
}

void StepRecord::clear() {
  members.clear();
  for (std::vector<RequestId>* list :
       {&admitted, &preempted_recompute, &preempted_swap, &finished, &cancelled})
    list->clear();
  prefix_hits.clear();
  arrived.clear();
}

StepRing::StepRing(size_t records, size_t members) {
  for (size_t i = 0; i < std::max<size_t>(records, 1); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->record.reserve(members);
  }
}

bool StepRing::read(uint64_t index, StepRecord& record) const {
  const Slot& slot = *slots_[index % slots_.size()];
  const std::lock_guard lock(slot.mutex);
  if (slot.index != index) return false;
  record = slot.record;
  return true;
}

}  // namespace hearth
