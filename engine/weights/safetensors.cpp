#include "engine/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/weights/byte_reader.h"
#include "engine/weights/cut_off.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/json_text.h"
#include "engine/weights/tensor_list.h"

namespace hearth {
namespace {

// The limit of the format's own library.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
// {"dtype":"F32","shape":[1],"data_offsets":[0,4]} with a name of one letter, and its two commas.
constexpr std::uint64_t kLeastEntryBytes = 50;
constexpr std::size_t kMaxTensorDimensions = 8;
constexpr std::uint64_t kMaxWeights = std::uint64_t{1} << 32;

std::optional<WeightFormat> format_of(std::string_view dtype) {
  if (dtype == "F32") return WeightFormat::kF32;
  if (dtype == "F16") return WeightFormat::kF16;
  if (dtype == "BF16") return WeightFormat::kBf16;
  return std::nullopt;
}

// One entry of the header while it is being parsed.
struct Entry {
  std::string name, dtype;
  std::array<std::uint64_t, kMaxTensorDimensions> shape{};
  std::size_t dimensions = 0;
  std::array<std::uint64_t, 2> offsets{};
  std::size_t offset_count = 0;
  bool has_shape = false;
};

// Follows the parser through { "name": { "dtype": "F32", "shape": [..], "data_offsets": [..] } }.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::span<const std::byte> data, const TensorNaming& naming,
               std::vector<ModelTensor>& tensors)
      : data_(data), naming_(naming), tensors_(tensors) {}

  // What is wrong with the header, or with the file it belongs to; empty if nothing is.
  const std::string& problem() const { return problem_; }
  // Once all is read: tensors may lie outside the file because it is cut off, or because the header
  // is damaged. In a whole file they follow each other without gaps.
  void check_data() {
    if (outside_.empty()) return;
    const bool in_order = !damaged_ && total_ == end_;
    const std::string cut_off = in_order ? cut_off_message(end_ - data_.size()) : std::string();
    problem_ = cut_off.empty() ? outside_ : cut_off;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 0 || depth_ == 1) {
      ++depth_;
      return true;
    }
    return fail("has an object where none belongs");
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      in_metadata_ = text == "__metadata__";
      entry_ = Entry{.name = std::move(text)};
    } else {
      field_ = field_named(text);
      if (field_ == Field::kOther && !in_metadata_)
        return fail(fmt::format("has an unknown field {}", in_quotes(text)));
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    return depth_ == 0 || in_metadata_ || add();
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_ ||
        (field_ != Field::kShape && field_ != Field::kOffsets))
      return fail("has an array where none belongs");
    in_array_ = true;
    if (field_ == Field::kShape) {
      entry_.has_shape = true;
      entry_.dimensions = 0;
    } else {
      entry_.offset_count = 0;
    }
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!in_array_) return fail("has a number where none belongs");
    if (field_ == Field::kShape) {
      if (entry_.dimensions == kMaxTensorDimensions) return fail("has too many dimensions");
      entry_.shape[entry_.dimensions++] = value;
    } else {
      if (entry_.offset_count == 2) return fail("has more than two offsets");
      entry_.offsets[entry_.offset_count++] = value;
    }
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ != 2 || in_array_) return fail("has a string where none belongs");
    if (in_metadata_) return true;
    if (field_ != Field::kDtype) return fail("has a string where none belongs");
    entry_.dtype = std::move(text);
    return true;
  }
  bool null() override { return fail("has a null where none belongs"); }
  bool boolean(bool) override { return fail("has a boolean where none belongs"); }
  bool number_integer(std::int64_t) override { return fail("has a negative number"); }
  bool number_float(double, const std::string&) override { return fail("has an invalid number"); }
  bool binary(nlohmann::json::binary_t&) override { return fail("has binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = json_error(sizeof(std::uint64_t) + position).message;
    return false;
  }

 private:
  enum class Field { kDtype, kShape, kOffsets, kOther };
  static Field field_named(std::string_view text) {
    if (text == "dtype") return Field::kDtype;
    if (text == "shape") return Field::kShape;
    if (text == "data_offsets") return Field::kOffsets;
    return Field::kOther;
  }

  bool fail(std::string_view what) {
    problem_ = depth_ == 0 || entry_.name.empty()
                   ? fmt::format("the header {}", what)
                   : fmt::format("tensor {} {}", in_quotes(entry_.name), what);
    return false;
  }

  // Counts an entry, wanted or not.
  void count_bytes() {
    const auto [begin, end] = entry_.offsets;
    damaged_ = damaged_ || entry_.offset_count != 2 || begin > end ||
               __builtin_add_overflow(total_, end - begin, &total_);
    end_ = std::max(end_, end);
  }

  // The entry is complete: checks and appends it.
  bool add() {
    count_bytes();
    auto name = naming_(entry_.name);
    if (!name) return true;
    if (entry_.dtype.empty() || !entry_.has_shape || entry_.offset_count != 2)
      return fail("lacks its dtype, shape or data_offsets");
    // The two halves of MXFP4, which hugging_face/expert_tensors.cpp joins.
    const bool raw =
        entry_.dtype == "U8" && (name->ends_with(kMxfp4Blocks) || name->ends_with(kMxfp4Exponents));
    const auto format = raw ? WeightFormat::kMxfp4 : format_of(entry_.dtype);
    if (!format)
      return fail(
          fmt::format("is of type {}; only F32, F16 and BF16 are read", in_quotes(entry_.dtype)));
    std::uint64_t weights = 1;
    for (std::size_t d = 0; d < entry_.dimensions; ++d)
      if (__builtin_mul_overflow(weights, entry_.shape[d], &weights) || weights >= kMaxWeights)
        return fail("has over 2^32 elements");
    if (weights == 0) return fail("has no elements");
    const auto [begin, end] = entry_.offsets;
    const std::uint64_t bytes = raw ? weights : weights * format_info(*format).block_bytes;
    if (begin <= end && end - begin != bytes)
      return fail(fmt::format("has {} bytes instead of {}", end - begin, bytes));
    if (begin > end || end > data_.size()) {
      if (outside_.empty())
        outside_ = fmt::format("tensor {} lies at bytes {} to {}, outside the file's {} of data",
                               in_quotes(entry_.name), begin, end, data_.size());
      return true;
    }
    const std::uint64_t cols = entry_.dimensions == 0 ? 1 : entry_.shape[entry_.dimensions - 1];
    std::uint64_t matrices = 1;
    for (std::size_t d = 0; d + 2 < entry_.dimensions; ++d) matrices *= entry_.shape[d];
    tensors_.push_back({.name = std::move(*name),
                        .format = *format,
                        .matrices = static_cast<std::uint32_t>(matrices),
                        .rows = weights / cols,
                        .cols = cols,
                        .bytes = data_.subspan(begin, bytes)});
    return true;
  }

  std::span<const std::byte> data_;
  const TensorNaming& naming_;
  std::vector<ModelTensor>& tensors_;
  std::string problem_, outside_;      // outside_: the first tensor that is not in the file
  std::uint64_t end_ = 0, total_ = 0;  // where the data ends; the bytes of all tensors
  bool damaged_ = false;
  int depth_ = 0;
  bool in_metadata_ = false, in_array_ = false;
  Field field_ = Field::kOther;
  Entry entry_;
};

}  // namespace

Result<std::string_view> safetensors_header(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  HEARTH_ASSIGN(const auto length, reader.number<std::uint64_t>("the header's length"));
  if (length > kMaxHeaderBytes)
    return Error{ErrorKind::kInvalid,
                 fmt::format("not a safetensors file: a header of {} bytes", length)};
  HEARTH_ASSIGN(const auto header, reader.take(length, "the header"));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (!text.starts_with('{'))
    return reader.error_here("not a safetensors file: its header does not begin with {");
  return text;
}

Result<std::vector<ModelTensor>> read_safetensors(std::span<const std::byte> bytes,
                                                  const TensorNaming& naming) {
  HEARTH_ASSIGN(const std::string_view header, safetensors_header(bytes));
  HEARTH_TRY(check_json_limits(header, {.depth = 4, .total_bytes = kMaxHeaderBytes}));
  std::vector<ModelTensor> tensors;
  tensors.reserve(header.size() / kLeastEntryBytes);
  HeaderReader reader(bytes.subspan(sizeof(std::uint64_t) + header.size()), naming, tensors);
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader))
    return Error{ErrorKind::kInvalid, reader.problem()};
  reader.check_data();
  if (!reader.problem().empty()) return Error{ErrorKind::kInvalid, reader.problem()};
  HEARTH_TRY(refuse_overlaps(tensors));
  return tensors;
}

}  // namespace hearth
