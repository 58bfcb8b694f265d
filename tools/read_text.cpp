#include "tools/read_text.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

namespace hearth {
namespace {

Result<std::string> read_all(std::istream& stream, const std::string& name) {
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad()) return Error{ErrorKind::kIo, fmt::format("cannot read {}", name)};
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{ErrorKind::kInvalid, fmt::format("{} is a folder", path.string())};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorKind::kNotFound, fmt::format("cannot open {}", path.string())};
  return read_all(file, path.string());
}

Result<std::string> read_standard_input() { return read_all(std::cin, "standard input"); }

}  // namespace hearth
