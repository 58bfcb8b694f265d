// Moves bytes between the host and device buffers, through a ring of staging memory that is filled
// while earlier parts are still being copied. Where the host can see a buffer's memory the ring is
// skipped. Runs on the transfer queue where there is one. One thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/result.h"
#include "runtime/timeline.h"

namespace hearth {

class Device;

struct TransferOptions {
  uint64_t ring_bytes = 64ull << 20;
  uint64_t chunk_bytes = 8ull << 20;  // what one copy command moves at most
  bool direct = true;                 // write host-visible buffers in place
};

class Transfer {
 public:
  static Result<std::unique_ptr<Transfer>> create(Device& device,
                                                  const TransferOptions& options = {});
  // Waits for copies under way.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // `source` may be reused when this returns; `to` is complete after finish().
  // REQUIRES: the GPU does not use `to` meanwhile.
  Status upload(const BufferSlice& to, std::span<const std::byte> source);
  // The same for bytes that are made on the fly: `fill(offset, chunk)` writes the bytes at
  // [offset, offset + chunk.size()) of `to` straight into staging memory, in order.
  using Fill = std::function<Status(uint64_t offset, std::span<std::byte> chunk)>;
  Status upload(const BufferSlice& to, const Fill& fill);
  // Waits until every upload has arrived.
  Status finish();

  // Complete when it returns. REQUIRES: the GPU's writes to `from` are over.
  Status download(const BufferSlice& from, std::span<std::byte> target);

 private:
  struct Flight {
    uint64_t bytes;  // of the ring
    TimelinePoint done;
  };
  Transfer(Device& device, const TransferOptions& options) : device_(device), options_(options) {}
  // Makes room for `bytes` in one piece and returns its offset in the ring.
  Result<uint64_t> reserve(uint64_t bytes);
  Result<TimelinePoint> copy(const BufferSlice& from, const BufferSlice& to);

  Device& device_;
  TransferOptions options_;
  Buffer ring_, readback_;
  uint64_t head_ = 0;  // where the next bytes go
  uint64_t used_ = 0;  // bytes between the oldest flight and head_
  std::deque<Flight> flights_;
};

}  // namespace hearth
