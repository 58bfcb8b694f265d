#include "runtime/buffer.h"

#include "runtime/memory.h"

namespace hearth {

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  memory_ = std::exchange(other.memory_, nullptr);
  handle_ = std::exchange(other.handle_, nullptr);
  allocation_ = std::exchange(other.allocation_, nullptr);
  imported_ = std::exchange(other.imported_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  address_ = std::exchange(other.address_, 0);
  mapped_ = std::exchange(other.mapped_, nullptr);
  intent_ = other.intent_;
  return *this;
}

void Buffer::reset() {
  if (memory_ != nullptr) memory_->free(*this);
  memory_ = nullptr;
}

Status Buffer::flush() const { return memory_->flush(*this); }

Status Buffer::invalidate() const { return memory_->invalidate(*this); }

}  // namespace hearth
