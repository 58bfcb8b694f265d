#include "engine/weights/gguf_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/weights/in_quotes.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

constexpr std::uint32_t kVersion = 3;

template <class T>
void append_number(std::string& bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.append(raw, sizeof(T));
}

void append_string(std::string& bytes, std::string_view text) {
  append_number(bytes, std::uint64_t{text.size()});
  bytes += text;
}

}  // namespace

void GgufKeys::begin(std::string_view key, GgufType type) {
  ++count_;
  append_string(bytes_, key);
  append_number(bytes_, type);
}

template <class T>
void GgufKeys::append(T value) {
  append_number(bytes_, value);
}

void GgufKeys::append_text(std::string_view text) { append_string(bytes_, text); }

template <class T>
void GgufKeys::append_array(std::string_view key, GgufType element, std::span<const T> values) {
  begin(key, GgufType::kArray);
  append(element);
  append(std::uint64_t{values.size()});
  for (const T value : values) append(value);
}

void GgufKeys::add(std::string_view key, bool value) {
  begin(key, GgufType::kBool);
  append(static_cast<std::uint8_t>(value));
}
void GgufKeys::add(std::string_view key, std::uint32_t value) {
  begin(key, GgufType::kUint32);
  append(value);
}
void GgufKeys::add(std::string_view key, std::uint64_t value) {
  begin(key, GgufType::kUint64);
  append(value);
}
void GgufKeys::add(std::string_view key, std::int32_t value) {
  begin(key, GgufType::kInt32);
  append(value);
}
void GgufKeys::add(std::string_view key, float value) {
  begin(key, GgufType::kFloat32);
  append(value);
}
void GgufKeys::add(std::string_view key, std::string_view value) {
  begin(key, GgufType::kString);
  append_text(value);
}
void GgufKeys::add(std::string_view key, std::span<const std::string_view> values) {
  begin(key, GgufType::kArray);
  append(GgufType::kString);
  append(std::uint64_t{values.size()});
  for (const std::string_view value : values) append_text(value);
}
void GgufKeys::add(std::string_view key, std::span<const float> values) {
  append_array(key, GgufType::kFloat32, values);
}
void GgufKeys::add(std::string_view key, std::span<const std::int32_t> values) {
  append_array(key, GgufType::kInt32, values);
}
void GgufKeys::add(const GgufKey& key) {
  begin(key.key, key.type);
  bytes_.append(reinterpret_cast<const char*>(key.value.data()), key.value.size());
}

std::uint64_t GgufTensorPlan::bytes() const {
  const FormatInfo& info = format_info(format);
  return rows * cols / info.block_weights * info.block_bytes;
}

std::string gguf_header(const GgufKeys& keys, std::span<const GgufTensorPlan> tensors,
                        std::uint64_t alignment) {
  std::string header(kGgufMagic);
  append_number(header, kVersion);
  append_number(header, std::uint64_t{tensors.size()});
  append_number(header, keys.count());
  header += keys.bytes();
  std::uint64_t offset = 0;
  for (const GgufTensorPlan& tensor : tensors) {
    append_string(header, tensor.name);
    const std::uint32_t dimensions = tensor.matrices > 1 ? 3 : tensor.rows > 1 ? 2 : 1;
    append_number(header, dimensions);
    append_number(header, tensor.cols);
    if (dimensions > 1) append_number(header, tensor.rows / tensor.matrices);
    if (dimensions > 2) append_number(header, std::uint64_t{tensor.matrices});
    append_number(header, format_info(tensor.format).ggml_type);
    append_number(header, offset);
    offset += round_up(tensor.bytes(), alignment);
  }
  header.resize(round_up(header.size(), alignment), '\0');
  return header;
}

GgufWriter::GgufWriter(std::filesystem::path path, std::vector<GgufTensorPlan> tensors)
    : path_(std::move(path)), tensors_(std::move(tensors)) {
  temporary_ = path_;
  temporary_ += fmt::format(".{}.part", ::getpid());
}

GgufWriter::GgufWriter(GgufWriter&&) noexcept = default;

GgufWriter::~GgufWriter() {
  if (file_ == nullptr) return;
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Error GgufWriter::failed() const {
  const int error = errno;
  return {ErrorKind::kIo, fmt::format("cannot write {}: {}{}", path_.string(), std::strerror(error),
                                      file_ == nullptr ? "" : "; the unfinished file was removed")};
}

Result<GgufWriter> GgufWriter::create(std::filesystem::path path, const GgufKeys& keys,
                                      std::vector<GgufTensorPlan> tensors) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return Error{ErrorKind::kInvalid,
                 fmt::format("{}: exists and is not a regular file", path.string())};
  GgufWriter writer(std::move(path), std::move(tensors));
  writer.file_.reset(std::fopen(writer.temporary_.c_str(), "wb"));
  if (writer.file_ == nullptr) return writer.failed();
  const std::string header = gguf_header(keys, writer.tensors_);
  HEARTH_TRY(writer.write_raw(header.data(), header.size()));
  return writer;
}

Status GgufWriter::write_raw(const void* bytes, std::size_t size) {
  if (size > 0 && std::fwrite(bytes, 1, size, file_.get()) != size) return failed();
  return {};
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  if (tensor_ == tensors_.size() || bytes.size() > tensors_[tensor_].bytes() - written_)
    return Error{ErrorKind::kInternal,
                 fmt::format("{}: more bytes were written than its tensors have", path_.string())};
  HEARTH_TRY(write_raw(bytes.data(), bytes.size()));
  written_ += bytes.size();
  if (written_ < tensors_[tensor_].bytes()) return {};
  static constexpr char kZeros[kGgufDefaultAlignment] = {};
  const std::uint64_t padding = round_up(written_, kGgufDefaultAlignment) - written_;
  ++tensor_;
  written_ = 0;
  return write_raw(kZeros, padding);
}

Status GgufWriter::finish() {
  if (tensor_ != tensors_.size())
    return Error{ErrorKind::kInternal, fmt::format("{}: tensor {} was not written", path_.string(),
                                                   in_quotes(tensors_[tensor_].name))};
  if (std::fflush(file_.get()) != 0) return failed();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed();
  file_.reset();
  return {};
}

}  // namespace hearth
