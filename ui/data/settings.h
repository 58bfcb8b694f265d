// What the dashboard remembers between runs, in a JSON file. A value that is missing or of the
// wrong type reads as the default. Call only from the window's thread.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Where settings and conversations are stored; empty if there is no home folder.
std::filesystem::path default_state_folder();

class Settings {
 public:
  // Without a folder or a readable file, all settings have their defaults. An invalid file is
  // renamed to settings.json.broken and reported in the log.
  explicit Settings(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }

  template <class T>
  T get(std::string_view key, T fallback) const {
    const auto found = values_.find(std::string(key));
    if (found == values_.end()) return fallback;
    try {
      return found->get<T>();
    } catch (const nlohmann::json::exception&) {
      return fallback;
    }
  }
  template <class T>
  void set(std::string_view key, const T& value) {
    nlohmann::json json = value;
    nlohmann::json& old = values_[std::string(key)];
    if (old == json) return;
    old = std::move(json);
    changed_ = true;
  }

  // Writes the file if anything changed. Does nothing without a folder.
  Status save();

 private:
  std::filesystem::path folder_;
  nlohmann::json values_ = nlohmann::json::object();
  bool changed_ = false;
};

}  // namespace hearth
