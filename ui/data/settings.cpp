#include "ui/data/settings.h"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "runtime/host/read_file.h"
#include "runtime/host/replace_file.h"
#include "runtime/log.h"

namespace hearth {
namespace {

constexpr std::string_view kFile = "settings.json";
constexpr uint64_t kMostSettingsBytes = 16 << 20;

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
  const Result<std::string> text =
      read_file(file, {.most_bytes = kMostSettingsBytes, .regular_only = true});
  if (!text.ok()) {
    if (text.error().kind != ErrorKind::kNotFound)
      log_line(fmt::format("settings are not read: {}", text.error().message));
    return;
  }
  nlohmann::json read = nlohmann::json::parse(*text, nullptr, false);
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
  HEARTH_TRY(
      replace_file(folder_ / kFile, values_.dump(2), {.create_folder = true, .permissions = 0600}));
  changed_ = false;
  return {};
}

}  // namespace hearth
