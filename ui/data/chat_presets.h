// Named combinations of a system prompt and sampling options, kept for each model. Plain data,
// saved as JSON in the settings.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ui/data/chat.h"

namespace hearth {

struct ChatPreset {
  std::string system;
  ChatSampling sampling;
};

class ChatPresets {
 public:
  // Entries that cannot be read are left out.
  explicit ChatPresets(const nlohmann::json& saved = {});
  nlohmann::json saved() const;

  std::vector<std::string> names(const std::string& model) const;
  const ChatPreset* find(const std::string& model, const std::string& name) const;
  void save(const std::string& model, const std::string& name, const Chat& from);
  void remove(const std::string& model, const std::string& name);

 private:
  std::map<std::string, std::map<std::string, ChatPreset>> presets_;  // by model and name
};

void use_preset(const ChatPreset& preset, Chat& chat);

}  // namespace hearth
