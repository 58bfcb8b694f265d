#include "engine/weights/hugging_face/weight_index.h"

#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"
#include "engine/weights/json_text.h"

namespace hearth::hugging_face {
namespace {

constexpr std::size_t kMaxIndexBytes = 100'000'000;
constexpr std::size_t kMaxFiles = 10'000;

// Parses { "metadata": {...}, "weight_map": { "tensor": "file" } } as a stream and keeps only the
// files, because their headers list the tensors.
class IndexReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& problem() const { return problem_; }
  bool found() const { return found_; }
  const std::set<std::string>& files() const { return files_; }

  bool start_object(std::size_t) override {
    ++depth_;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      in_map_ = text == "weight_map";
      found_ = found_ || in_map_;
    } else if (in_map_) {
      tensor_ = std::move(text);
    }
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return value_allowed(); }
  bool end_array() override { return true; }
  bool string(std::string& text) override {
    if (!in_map_) return true;
    if (depth_ != 2) return value_allowed();
    if (text.empty() || text.find('/') != std::string::npos || text.find('\0') != std::string::npos)
      return fail(fmt::format("tensor {}: {} is not a file of this folder", in_quotes(tensor_),
                              in_quotes(text)));
    files_.insert(std::move(text));
    return files_.size() <= kMaxFiles || fail("too many files");
  }
  bool null() override { return value_allowed(); }
  bool boolean(bool) override { return value_allowed(); }
  bool number_unsigned(std::uint64_t) override { return value_allowed(); }
  bool number_integer(std::int64_t) override { return value_allowed(); }
  bool number_float(double, const std::string&) override { return value_allowed(); }
  bool binary(nlohmann::json::binary_t&) override { return value_allowed(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail(json_error(position).message);
  }

 private:
  // Outside the map any value is allowed, inside it only file names.
  bool value_allowed() {
    return !in_map_ || fail(fmt::format("tensor {}: not the name of a file", in_quotes(tensor_)));
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  int depth_ = 0;
  bool in_map_ = false, found_ = false;
  std::string tensor_, problem_;
  std::set<std::string> files_;
};

}  // namespace

Result<std::vector<std::string>> read_weight_index(std::string_view json) {
  HEARTH_TRY(check_json_limits(json, {.token_bytes = 4096, .total_bytes = kMaxIndexBytes}));
  IndexReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader))
    return Error{ErrorKind::kInvalid, reader.problem()};
  if (!reader.found()) return Error{ErrorKind::kInvalid, "'weight_map' is missing"};
  return std::vector<std::string>(reader.files().begin(), reader.files().end());
}

}  // namespace hearth::hugging_face
