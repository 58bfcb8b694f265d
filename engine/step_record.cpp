#include "engine/step_record.h"

namespace hearth {

StepRing::StepRing(size_t records, size_t members) {
  for (size_t i = 0; i < records; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    StepRecord& record = slots_.back()->record;
    record.members.reserve(members);
    for (std::vector<RequestId>* list :
         {&record.admitted, &record.preempted_recompute, &record.preempted_swap, &record.finished})
      list->reserve(members);
    record.prefix_hits.reserve(members);
  }
}

void StepRing::clear(StepRecord& record) {
  record.members.clear();
  record.admitted.clear();
  record.preempted_recompute.clear();
  record.preempted_swap.clear();
  record.finished.clear();
  record.prefix_hits.clear();
  record.kernels.clear();
}

bool StepRing::read(uint64_t index, StepRecord& record) const {
  const Slot& slot = *slots_[index % slots_.size()];
  const std::lock_guard lock(slot.mutex);
  if (slot.index != index) return false;
  record = slot.record;
  return true;
}

}  // namespace hearth
