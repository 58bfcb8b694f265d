// Device memory that kernels access by address. Move-only. Destroying a Buffer frees the memory at
// once, so a buffer that the GPU may still use must be handed to Timeline::release_after().
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Memory;

// The purpose of memory. It decides where the memory is placed and which statistic it counts
// towards.
enum class MemoryIntent {
  kWeights,      // written once, read by every step
  kKv,           // the paged cache
  kActivations,  // scratch between kernels
  kUpload,       // written by the host, read by the GPU
  kReadback,     // written by the GPU, read by the host
};
inline constexpr size_t kMemoryIntents = 5;

// A range of a Buffer. The Buffer must outlive the slice.
//
// A slice that leaves its buffer is a mistake of the program, so making one fails an assert. In
// builds without asserts no such slice reaches the GPU: CommandRecorder and Transfer return an
// error.
struct BufferSlice;

class Buffer {
 public:
  Buffer() = default;
  // A buffer with an address and a size but no memory, for dry recordings (CommandRecorder::dry()).
  static Buffer stand_in(uint64_t address, uint64_t bytes) {
    Buffer buffer;
    buffer.address_ = address;
    buffer.bytes_ = bytes;
    return buffer;
  }
  // The same with room for anything: for a dry recording that does not know the buffer.
  static Buffer of_any_size() { return stand_in(256, uint64_t{1} << 62); }
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint64_t bytes() const { return bytes_; }
  uint64_t address() const { return address_; }  // a multiple of 256
  MemoryIntent intent() const { return intent_; }
  explicit operator bool() const { return handle_ != nullptr; }
  bool is_imported() const { return imported_ != nullptr; }  // Memory::import_host()

  // The whole buffer, or a part of it. REQUIRES: the part is within the buffer.
  BufferSlice all() const;
  BufferSlice slice(uint64_t offset, uint64_t bytes) const;

  // The host's view, or null if the host cannot see the memory. Never null for kUpload and
  // kReadback, nor for any intent on devices with unified memory.
  std::byte* mapped() const { return mapped_; }
  // The same as a span of T. REQUIRES: mapped() is not null.
  template <class T>
  std::span<T> view() const {
    return {reinterpret_cast<T*>(mapped_), static_cast<size_t>(bytes_ / sizeof(T))};
  }
  // flush() between the host's writes and the GPU's reads; invalidate() between the GPU's writes
  // and the host's reads. Free on coherent memory.
  Status flush() const;
  Status invalidate() const;

  VkBuffer handle() const { return handle_; }

 private:
  friend class Memory;
  void reset();

  Memory* memory_ = nullptr;
  VkBuffer handle_ = nullptr;
  VmaAllocation allocation_ = nullptr;
  VkDeviceMemory imported_ = nullptr;  // instead of an allocation
  uint64_t bytes_ = 0, address_ = 0;
  std::byte* mapped_ = nullptr;
  MemoryIntent intent_ = MemoryIntent::kActivations;
};

struct BufferSlice {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  // Whether it is within its buffer.
  bool is_valid() const {
    return buffer != nullptr && offset <= buffer->bytes() && bytes <= buffer->bytes() - offset;
  }
  // REQUIRES: is_valid().
  uint64_t address() const {
    assert(is_valid());
    return buffer->address() + offset;
  }
  // A part of it. REQUIRES: the part is within the slice.
  BufferSlice slice(uint64_t from, uint64_t count) const {
    assert(from <= bytes && count <= bytes - from);
    return {buffer, offset + from, count};
  }
};

inline BufferSlice Buffer::all() const { return {this, 0, bytes_}; }
inline BufferSlice Buffer::slice(uint64_t offset, uint64_t bytes) const {
  return all().slice(offset, bytes);
}

}  // namespace hearth
