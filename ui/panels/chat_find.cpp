#include "ui/panels/chat_find.h"

#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/chat_export.h"
#include "ui/draw/tiles.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {

Chat* ChatFind::draw(const ChatController& chats, const Chat& shown, size_t found,
                     const Theme& theme) {
  if (!open_) return nullptr;
  ImGui::SetNextItemWidth(theme.px(180));
  if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
  line_box("##find", text_);
  const bool escape = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  ImGui::SameLine();
  if (ImGui::SmallButton("Close search") || escape) open_ = false;
  ImGui::SameLine();
  ImGui::TextDisabled(
      "%s", text_.empty() ? "Search in all conversations" : fmt::format("{} here", found).c_str());
  // Searching all conversations takes a while, so it is done once per text.
  const std::string key = text_ + '\n' + shown.id;
  if (std::exchange(searched_, key) != key) {
    others_.clear();
    const auto& all = chats.history().chats();
    for (auto chat = all.rbegin(); chat != all.rend(); ++chat)
      if ((*chat)->id != shown.id && search_chat(**chat, text_) > 0) others_.push_back((*chat)->id);
  }
  if (others_.empty()) return nullptr;
  Chat* wanted = nullptr;
  ImGui::TextDisabled("also in");
  constexpr size_t kMostShown = 6;
  for (size_t i = 0; i < others_.size() && i < kMostShown; ++i) {
    Chat* const chat = chats.history().find(others_[i]);
    if (chat == nullptr) continue;
    const std::string label = fmt::format("{}##found {}", chat->display_title(), i);
    same_line_if_fits(button_width(label.c_str()));
    if (ImGui::SmallButton(label.c_str())) wanted = chat;
  }
  return wanted;
}

}  // namespace hearth
