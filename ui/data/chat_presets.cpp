#include "ui/data/chat_presets.h"

namespace hearth {
namespace {

using PresetJson = nlohmann::json;

// A preset is saved as a conversation without messages, whose format is known to be complete.
PresetJson preset_json(const ChatPreset& preset) {
  Chat chat;
  chat.system = preset.system;
  chat.sampling = preset.sampling;
  return PresetJson::parse(write_chat(chat), nullptr, false);
}

}  // namespace

ChatPresets::ChatPresets(const PresetJson& saved) {
  if (!saved.is_object()) return;
  for (const auto& [model, presets] : saved.items()) {
    if (!presets.is_object()) continue;
    for (const auto& [name, preset] : presets.items()) {
      const Result<Chat> chat = read_chat(preset.dump());
      if (chat.ok()) presets_[model][name] = {chat->system, chat->sampling};
    }
  }
}

PresetJson ChatPresets::saved() const {
  PresetJson result = PresetJson::object();
  for (const auto& [model, presets] : presets_)
    for (const auto& [name, preset] : presets) result[model][name] = preset_json(preset);
  return result;
}

std::vector<std::string> ChatPresets::names(const std::string& model) const {
  std::vector<std::string> result;
  if (const auto found = presets_.find(model); found != presets_.end())
    for (const auto& [name, preset] : found->second) result.push_back(name);
  return result;
}

const ChatPreset* ChatPresets::find(const std::string& model, const std::string& name) const {
  const auto presets = presets_.find(model);
  if (presets == presets_.end()) return nullptr;
  const auto preset = presets->second.find(name);
  return preset == presets->second.end() ? nullptr : &preset->second;
}

void ChatPresets::save(const std::string& model, const std::string& name, const Chat& from) {
  presets_[model][name] = {from.system, from.sampling};
}

void ChatPresets::remove(const std::string& model, const std::string& name) {
  if (const auto presets = presets_.find(model); presets != presets_.end())
    presets->second.erase(name);
}

void use_preset(const ChatPreset& preset, Chat& chat) {
  chat.system = preset.system;
  chat.sampling = preset.sampling;
}

}  // namespace hearth
