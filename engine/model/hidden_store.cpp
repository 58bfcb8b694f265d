#include "engine/model/hidden_store.h"

#include <cassert>

#include "engine/ops/kernel_plan.h"
#include "params/hidden_rows.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {

Result<HiddenStore> HiddenStore::create(Device& device, uint32_t width, uint32_t slots,
                                        uint32_t context) {
  HiddenStore store(device);
  store.page_bytes_ = uint64_t{params::kHiddenPageTokens} * width * 2;
  store.slot_pages_ = divide_up(context, params::kHiddenPageTokens);
  store.own_.resize(slots);
  HEARTH_ASSIGN(store.table_, device.memory().allocate(
                                  {.bytes = uint64_t{slots} * store.slot_pages_ * sizeof(uint64_t),
                                   .intent = MemoryIntent::kActivations,
                                   .name = "pages of hidden states",
                                   .host_writes = true}));
  return store;
}

Status HiddenStore::reserve(uint32_t slot, uint32_t tokens) {
  std::vector<uint32_t>& own = own_.at(slot);
  const uint32_t wanted = divide_up(tokens, params::kHiddenPageTokens);
  assert(wanted <= slot_pages_);
  if (own.size() >= wanted) return {};
  while (own.size() + free_.size() < wanted) {
    HEARTH_ASSIGN(Buffer page, device_->memory().allocate({.bytes = page_bytes_,
                                                           .intent = MemoryIntent::kActivations,
                                                           .name = "hidden states"}));
    free_.push_back(static_cast<uint32_t>(pages_.size()));
    pages_.push_back(std::move(page));
  }
  while (own.size() < wanted) {
    table_.view<uint64_t>()[size_t{slot} * slot_pages_ + own.size()] =
        pages_[free_.back()].address();
    own.push_back(free_.back());
    free_.pop_back();
  }
  return table_.flush();
}

void HiddenStore::release(uint32_t slot) {
  std::vector<uint32_t>& own = own_.at(slot);
  free_.insert(free_.end(), own.begin(), own.end());
  own.clear();
}

uint32_t HiddenStore::reserved(uint32_t slot) const {
  return static_cast<uint32_t>(own_.at(slot).size()) * params::kHiddenPageTokens;
}

}  // namespace hearth
