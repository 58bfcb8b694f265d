#include "runtime/transfer.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {

namespace {

// How many bytes are copied often follows from a file, and mapped memory is written directly.
Status check(const BufferSlice& slice, uint64_t host_bytes) {
  if (slice.is_valid() && slice.bytes == host_bytes) return {};
  return Error{
      ErrorKind::kInternal,
      fmt::format("cannot copy {} bytes to or from {} bytes at offset {} of a buffer of {}",
                  host_bytes, slice.bytes, slice.offset,
                  slice.buffer != nullptr ? slice.buffer->bytes() : 0)};
}

}  // namespace

Result<std::unique_ptr<Transfer>> Transfer::create(Device& device, const TransferOptions& options) {
  assert(options.chunk_bytes > 0 && options.chunk_bytes <= options.ring_bytes);
  std::unique_ptr<Transfer> transfer(new Transfer(device, options));
  HEARTH_ASSIGN(transfer->ring_, device.memory().allocate({.bytes = options.ring_bytes,
                                                           .intent = MemoryIntent::kUpload,
                                                           .name = "staging ring"}));
  HEARTH_ASSIGN(transfer->readback_, device.memory().allocate({.bytes = options.chunk_bytes,
                                                               .intent = MemoryIntent::kReadback,
                                                               .name = "staging readback"}));
  return transfer;
}

Transfer::~Transfer() {
  // A lost device has no copies in flight, and earlier calls have reported the error.
  if (!pending_copies_.empty()) static_cast<void>(finish().ok());
}

Result<uint64_t> Transfer::reserve(uint64_t bytes) {
  // A reservation does not wrap around: the rest of the ring is skipped and counts as used.
  const uint64_t to_end = options_.ring_bytes - head_;
  const uint64_t skipped = bytes > to_end ? to_end : 0;
  const uint64_t needed = bytes + skipped;
  while (options_.ring_bytes - used_ < needed) {
    if (pending_copies_.empty()) {
      head_ = used_ = 0;
      return reserve(bytes);
    }
    HEARTH_TRY(device_.transfer().wait(pending_copies_.front().done));
    used_ -= pending_copies_.front().bytes;
    pending_copies_.pop_front();
  }
  const uint64_t offset = skipped > 0 ? 0 : head_;
  head_ = (offset + bytes) % options_.ring_bytes;
  used_ += needed;
  pending_copies_.push_back({.bytes = needed, .done = {}});
  return offset;
}

Result<TimelinePoint> Transfer::copy(const BufferSlice& from, const BufferSlice& to) {
  Queue& queue = device_.transfer();
  HEARTH_ASSIGN(CommandRecorder recorder,
                CommandRecorder::begin(device_, {.name = "transfer", .queue = &queue}));
  recorder.copy(from, to);
  HEARTH_ASSIGN(CommandBuffer commands, recorder.finish());
  HEARTH_ASSIGN(const TimelinePoint point, queue.submit(commands));
  queue.timeline().release_after(point.value, std::move(commands));
  return point;
}

Status Transfer::upload(const BufferSlice& to, std::span<const std::byte> source) {
  HEARTH_TRY(check(to, source.size()));
  return upload(to, [&](uint64_t offset, std::span<std::byte> chunk) -> Status {
    std::memcpy(chunk.data(), source.data() + offset, chunk.size());
    return {};
  });
}

Status Transfer::upload(const BufferSlice& to, const Fill& fill) {
  HEARTH_TRY(check(to, to.bytes));
  if (device_.lost()) return device_.lost_error();
  if (options_.direct && to.buffer->mapped() != nullptr) {
    HEARTH_TRY(fill(0, {to.buffer->mapped() + to.offset, static_cast<size_t>(to.bytes)}));
    return to.buffer->flush();
  }
  for (uint64_t offset = 0; offset < to.bytes;) {
    const uint64_t bytes = std::min(to.bytes - offset, options_.chunk_bytes), head = head_;
    HEARTH_ASSIGN(const uint64_t place, reserve(bytes));
    const auto copied = [&]() -> Result<TimelinePoint> {
      HEARTH_TRY(fill(offset, {ring_.mapped() + place, static_cast<size_t>(bytes)}));
      HEARTH_TRY(ring_.flush());
      return copy(ring_.slice(place, bytes), to.slice(offset, bytes));
    }();
    if (!copied.ok()) {
      // The copy was never submitted, so nothing will signal its completion. It may also have
      // wrapped to the start of the ring; restore the head for the next one.
      used_ -= pending_copies_.back().bytes;
      head_ = head;
      pending_copies_.pop_back();
      return copied.error();
    }
    pending_copies_.back().done = *copied;
    offset += bytes;
  }
  return {};
}

Status Transfer::finish() {
  while (!pending_copies_.empty()) {
    const PendingCopy oldest = pending_copies_.front();
    pending_copies_.pop_front();
    used_ -= oldest.bytes;
    HEARTH_TRY(device_.transfer().wait(oldest.done));
  }
  device_.transfer().timeline().collect();
  return {};
}

Status Transfer::download(const BufferSlice& from, std::span<std::byte> target) {
  HEARTH_TRY(check(from, target.size()));
  if (device_.lost()) return device_.lost_error();
  if (options_.direct && from.buffer->mapped() != nullptr) {
    HEARTH_TRY(from.buffer->invalidate());
    std::memcpy(target.data(), from.buffer->mapped() + from.offset, target.size());
    return {};
  }
  for (uint64_t offset = 0; offset < from.bytes;) {
    const uint64_t bytes = std::min(from.bytes - offset, options_.chunk_bytes);
    HEARTH_ASSIGN(const TimelinePoint done,
                  copy(from.slice(offset, bytes), readback_.slice(0, bytes)));
    HEARTH_TRY(device_.transfer().wait(done));
    HEARTH_TRY(readback_.invalidate());
    std::memcpy(target.data() + offset, readback_.mapped(), bytes);
    offset += bytes;
  }
  return {};
}

}  // namespace hearth
