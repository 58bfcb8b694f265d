#include "ui/data/settings.h"

#include <cstdlib>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "runtime/log.h"
#include "ui/data/atomic_file.h"

namespace hearth {
namespace {

constexpr std::string_view kFile = "settings.json";

}  // namespace

std::filesystem::path default_state_folder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return std::filesystem::path(state) / "hearth";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".local/state/hearth";
  return {};
}

Settings::Settings(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  const std::filesystem::path file = folder_ / kFile;
  std::ifstream in(file, std::ios::binary);
  if (!in) return;
  nlohmann::json read = nlohmann::json::parse(in, nullptr, false);
  if (read.is_object()) {
    values_ = std::move(read);
    return;
  }
  std::error_code error;
  std::filesystem::rename(file, file.string() + ".broken", error);
  log_line(fmt::format("{} is not valid JSON; it was renamed to {}.broken", file.string(), kFile));
}

Status Settings::save() {
  if (!changed_ || folder_.empty()) return {};
  HEARTH_TRY(write_atomically(folder_ / kFile, values_.dump(2)));
  changed_ = false;
  return {};
}

}  // namespace hearth
