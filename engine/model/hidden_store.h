// The hidden states of sequences that contrastive search runs for, on the device: pages of 256
// tokens, allocated as sequences grow. Which page is where is in a table that kernels read, one row
// per slot. A page that a slot releases is reused, never freed: steps in flight may still write to
// it, and the next slot that gets it writes to it before it reads. For one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ops/hidden_rows.h"
#include "runtime/buffer.h"
#include "runtime/result.h"

namespace hearth {

class Device;

class HiddenStore {
 public:
  // For sequences of up to `context` tokens in `slots` slots, of a model of this width.
  static Result<HiddenStore> create(Device& device, uint32_t width, uint32_t slots,
                                    uint32_t context);

  // Makes room for the first `tokens` tokens of the slot's sequence. An error changes nothing.
  Status reserve(uint32_t slot, uint32_t tokens);
  // The slot has another sequence now.
  void release(uint32_t slot);
  // Tokens that there is room for.
  uint32_t reserved(uint32_t slot) const;

  HiddenPages pages() const { return {.table = table_.all(), .slot_pages = slot_pages_}; }

 private:
  explicit HiddenStore(Device& device) : device_(&device) {}

  Device* device_;
  uint64_t page_bytes_ = 0;
  uint32_t slot_pages_ = 0;
  Buffer table_;                            // [slots, slot_pages] u64, written by the host
  std::vector<Buffer> pages_;               // all of them
  std::vector<uint32_t> free_;              // of pages_
  std::vector<std::vector<uint32_t>> own_;  // of pages_, per slot
};

}  // namespace hearth
