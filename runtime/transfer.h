// Copies bytes between the host and device buffers through a ring of staging memory, which is
// filled while earlier parts are still being copied. Buffers that the host can see are accessed
// directly. Uses the transfer queue if there is one. Not thread-safe: one thread at a time.
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
  uint64_t chunk_bytes = 8ull << 20;  // the most that one copy command moves
  bool direct = true;                 // access host-visible buffers in place
};

class Transfer {
 public:
  static Result<std::unique_ptr<Transfer>> create(Device& device,
                                                  const TransferOptions& options = {});
  // Waits for copies in flight.
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // `source` may be reused when this returns; `to` is complete after finish(). Fails if it is not
  // as large as `to`. REQUIRES: the GPU does not use `to` in the meantime.
  Status upload(const BufferSlice& to, std::span<const std::byte> source);
  // The same for bytes that are generated: `fill(offset, chunk)` writes the bytes at [offset,
  // offset + chunk.size()) of `to` straight into staging memory, in order.
  using Fill = std::function<Status(uint64_t offset, std::span<std::byte> chunk)>;
  Status upload(const BufferSlice& to, const Fill& fill);
  // Waits until every upload is complete.
  Status finish();

  // Complete when it returns. Fails if `target` is not as large as `from`. REQUIRES: the GPU's
  // writes to `from` are done.
  Status download(const BufferSlice& from, std::span<std::byte> target);

 private:
  struct PendingCopy {
    uint64_t bytes;  // of the ring
    TimelinePoint done;
  };
  Transfer(Device& device, const TransferOptions& options) : device_(device), options_(options) {}
  // Makes room for `bytes` contiguous bytes and returns their offset in the ring.
  Result<uint64_t> reserve(uint64_t bytes);
  Result<TimelinePoint> copy(const BufferSlice& from, const BufferSlice& to);

  Device& device_;
  TransferOptions options_;
  Buffer ring_, readback_;
  uint64_t head_ = 0;  // where the next bytes go
  uint64_t used_ = 0;  // bytes between the oldest pending copy and head_
  std::deque<PendingCopy> pending_copies_;
};

}  // namespace hearth
