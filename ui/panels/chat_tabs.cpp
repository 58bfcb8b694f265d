#include "ui/panels/chat_tabs.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

// A chat's id starts with its time of creation: "20260131-184530-..." is "2026-01-31 18:45 UTC".
std::string start_time(std::string_view id) {
  if (id.size() < 13) return "at an unknown time";
  return fmt::format("{}-{}-{} {}:{} UTC", id.substr(0, 4), id.substr(4, 2), id.substr(6, 2),
                     id.substr(9, 2), id.substr(11, 2));
}

}  // namespace

void ChatTabs::draw(ChatController& chats, const Hooks& hooks) {
  if (!ImGui::BeginTabBar("##chats")) return;
  if (ImGui::TabItemButton("...", ImGuiTabItemFlags_Leading | ImGuiTabItemFlags_NoTooltip))
    ImGui::OpenPopup("##history");
  name_last_item("History");
  ImGui::SetItemTooltip("All conversations.");
  draw_history_menu(chats, hooks);
  const std::string select = std::exchange(select_, {});
  // An index, because drawing a chat may add another one.
  for (size_t i = 0; i < chats.history().chats().size(); ++i) {
    Chat& chat = *chats.history().chats()[i];
    if (!chat.open) continue;
    bool open = true;
    const std::string label = fmt::format("{}{}###{}", chat.display_title(),
                                          chats.answering(chat) ? " (answering)" : "", chat.id);
    const ImGuiTabItemFlags flags = chat.id == select ? ImGuiTabItemFlags_SetSelected : 0;
    const bool in_front = ImGui::BeginTabItem(label.c_str(), &open, flags);
    name_last_item(chat.display_title());
    draw_tab_menu(chats, chat, hooks);
    if (in_front) {
      // A tab that is about to be selected is drawn from the next frame on.
      if (select.empty() && select_.empty() && chat.id != shown_) hooks.show(chat);
      hooks.draw(chat);
      ImGui::EndTabItem();
    }
    if (!open) close_ = chat.id;
  }
  if (ImGui::TabItemButton("+", ImGuiTabItemFlags_Trailing | ImGuiTabItemFlags_NoTooltip))
    hooks.begin_chat();
  name_last_item("New chat");
  ImGui::SetItemTooltip("Start a new chat.");
  ImGui::EndTabBar();
  if (Chat* const chat = chats.history().find(close_)) chats.close(*chat);
  if (const Chat* const chat = chats.history().find(remove_)) chats.remove(*chat);
  close_.clear();
  remove_.clear();
  if (std::exchange(undo_, false))
    if (const Chat* const chat = chats.history().restore()) hooks.show(*chat);
}

void ChatTabs::draw_tab_menu(ChatController& chats, Chat& chat, const Hooks& hooks) {
  if (!ImGui::BeginPopupContextItem(chat.id.c_str())) return;
  if (ImGui::IsWindowAppearing()) {
    new_title_ = chat.display_title();
    ImGui::SetKeyboardFocusHere();
  }
  ImGui::TextUnformatted("Title");
  if (line_box("##title", new_title_)) {
    chats.rename(chat, new_title_);
    ImGui::CloseCurrentPopup();
  }
  if (ImGui::Button("Rename")) {
    chats.rename(chat, new_title_);
    ImGui::CloseCurrentPopup();
  }
  ImGui::SameLine();
  if (ImGui::Button("Close tab")) {
    close_ = chat.id;
    ImGui::CloseCurrentPopup();
  }
  ImGui::SameLine();
  if (ImGui::Button("Delete")) {
    remove_ = chat.id;
    ImGui::CloseCurrentPopup();
  }
  hooks.draw_export(chat);
  ImGui::EndPopup();
}

void ChatTabs::draw_history_menu(ChatController& chats, const Hooks& hooks) {
  if (!ImGui::BeginPopup("##history")) return;
  const auto& all = chats.history().chats();
  ImGui::TextUnformatted("Conversations");
  ImGui::Separator();
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    Chat& chat = **at;
    if (chat.exchanges.empty()) continue;
    ImGui::PushID(chat.id.c_str());
    if (ImGui::Selectable(fmt::format("{}##open", chat.display_title()).c_str(), chat.id == shown_,
                          0, {ImGui::GetFontSize() * 16, 0})) {
      if (!chat.open) {
        chat.open = true;
        chats.mark_unsaved(chat);
      }
      hooks.show(chat);
      ImGui::CloseCurrentPopup();
    }
    ImGui::SetItemTooltip("%zu messages, started %s", 2 * chat.exchanges.size(),
                          start_time(chat.id).c_str());
    ImGui::SameLine();
    if (ImGui::SmallButton("Delete")) remove_ = chat.id;
    ImGui::PopID();
  }
  const auto& unreadable = chats.history().unreadable();
  if (!unreadable.empty())
    faint_text(fmt::format("{} file{} could not be read and {} left untouched.", unreadable.size(),
                           unreadable.size() == 1 ? "" : "s",
                           unreadable.size() == 1 ? "was" : "were"));
  ImGui::EndPopup();
}

void ChatTabs::draw_undo(ChatController& chats) {
  const Chat* const removed = chats.history().removed();
  if (removed == nullptr) return;
  undo_ = ImGui::SmallButton("Undo");
  ImGui::SameLine();
  if (ImGui::SmallButton("Dismiss")) {
    chats.history().forget_removed();
    return;
  }
  ImGui::SameLine();
  ImGui::Text("Deleted: %s", removed->display_title().c_str());
}

}  // namespace hearth
