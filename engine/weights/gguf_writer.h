// Writes a GGUF file, version 3: first the header, then the tensors' bytes one after the other, so
// that models larger than memory can be written. For one thread.
//
// The file is written under a temporary name in the same folder and renamed when it is complete. If
// the object is destroyed before finish(), the temporary file is deleted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/formats.h"
#include "engine/weights/gguf.h"
#include "runtime/result.h"

namespace hearth {

// Keys and values in file layout.
class GgufKeys {
 public:
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::uint32_t value);
  void add(std::string_view key, std::uint64_t value);
  void add(std::string_view key, std::int32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, std::string_view value);
  // Without this, a string literal would convert to bool.
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  void add(std::string_view key, std::span<const std::string_view> values);
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const std::int32_t> values);
  // A copy of another file's key.
  void add(const GgufKey& key);

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, GgufType type);
  template <class T>
  void append(T value);
  void append_text(std::string_view text);
  template <class T>
  void append_array(std::string_view key, GgufType element, std::span<const T> values);

  std::uint64_t count_ = 0;
  std::string bytes_;
};

// A tensor's entry in the header.
struct GgufTensorPlan {
  std::string name;
  WeightFormat format;
  std::uint32_t matrices = 1;
  std::uint64_t rows = 1, cols = 0;

  std::uint64_t bytes() const;
};

// Everything before the tensors' bytes, padding included. Tensors follow in the given order, each
// at a multiple of `alignment`. If that is not the default, the caller must add the key for it.
std::string gguf_header(const GgufKeys& keys, std::span<const GgufTensorPlan> tensors,
                        std::uint64_t alignment = kGgufDefaultAlignment);

class GgufWriter {
 public:
  static Result<GgufWriter> create(std::filesystem::path path, const GgufKeys& keys,
                                   std::vector<GgufTensorPlan> tensors);
  GgufWriter(GgufWriter&&) noexcept;
  GgufWriter& operator=(GgufWriter&&) = delete;
  ~GgufWriter();

  // Writes the next bytes of the tensors, in the order given to create(). One call may write part
  // of a tensor, but not of two.
  Status write(std::span<const std::byte> bytes);
  // Fails if tensors are missing or the disk is full. The file exists under its name if and only if
  // this succeeds.
  Status finish();

 private:
  GgufWriter(std::filesystem::path path, std::vector<GgufTensorPlan> tensors);
  Status write_raw(const void* bytes, std::size_t size);
  Error failed() const;  // with errno's reason; the destructor removes the file

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_, temporary_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<GgufTensorPlan> tensors_;
  std::size_t tensor_ = 0;     // index of the tensor being written
  std::uint64_t written_ = 0;  // bytes of that tensor
};

}  // namespace hearth
