// What the dashboard remembers between runs: a JSON file. Values that are missing, or of another
// type than was asked for, are the default. Of the window's thread alone.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/result.h"

namespace hearth {

// Where settings and conversations are kept; empty without a home folder.
std::filesystem::path default_state_folder();

class Settings {
 public:
  // A folder that is empty or cannot be read: nothing was remembered. A broken file is kept as
  // settings.json.broken, said once.
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

  // Writes if anything changed. Without a folder nothing happens.
  Status save();

 private:
  std::filesystem::path folder_;
  nlohmann::json values_ = nlohmann::json::object();
  bool changed_ = false;
};

}  // namespace hearth
