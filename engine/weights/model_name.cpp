#include "engine/weights/model_name.h"

#include <string_view>
#include <system_error>

#include "runtime/host/printable.h"

namespace hearth {
namespace {

// "-00001-of-00003" at the end of a stem.
bool ends_in_part(std::string_view stem) {
  constexpr std::string_view kPattern = "-#####-of-#####";
  if (stem.size() <= kPattern.size()) return false;
  stem.remove_prefix(stem.size() - kPattern.size());
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool digit = stem[i] >= '0' && stem[i] <= '9';
    if (kPattern[i] == '#' ? !digit : stem[i] != kPattern[i]) return false;
  }
  return true;
}

bool is_gguf(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".gguf" || extension == ".GGUF";
}

std::string name_from_path(const std::filesystem::path& path) {
  if (is_gguf(path)) {
    std::string stem = path.stem().string();
    if (ends_in_part(stem)) stem.resize(stem.size() - std::string_view("-00001-of-00003").size());
    return stem;
  }
  // "." and ".." have names, too, and "model/" ends in an empty one.
  std::error_code ignored;
  std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::filesystem::path snapshots = whole.parent_path();
  const std::string repository = snapshots.parent_path().filename().string();
  if (snapshots.filename() == "snapshots" && repository.starts_with("models--"))
    return repository.substr(repository.rfind("--") + 2);
  return whole.filename().string();
}

}  // namespace

std::string model_name(const std::filesystem::path& path) {
  return printable(name_from_path(path));
}

}  // namespace hearth
