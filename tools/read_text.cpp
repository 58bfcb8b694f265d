#include "tools/read_text.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace hearth {
namespace {

Result<std::string> read_all(std::FILE* file, const std::string& name) {
  std::string text;
  std::array<char, 65536> buffer;
  while (const size_t bytes = std::fread(buffer.data(), 1, buffer.size(), file))
    text.append(buffer.data(), bytes);
  if (std::ferror(file) != 0)
    return Error{ErrorKind::kIo, fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  return text;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} is a folder, not a text file", path.string())};
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file)
    return Error{ErrorKind::kNotFound,
                 fmt::format("cannot open {}: {}", path.string(), std::strerror(errno))};
  return read_all(file.get(), path.string());
}

Result<std::string> read_standard_input() { return read_all(stdin, "standard input"); }

}  // namespace hearth
