#include "ui/panels/chat_files.h"

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <imgui.h>

#include "ui/data/chat_export.h"
#include "ui/panels/chat_widgets.h"

namespace hearth {
namespace {

constexpr const char* kAttachPopup = "Attach a text file";

std::string documents_folder() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? home : ".";
}

}  // namespace

bool ChatFiles::draw_attach(Chat& chat, const Theme& theme) {
  if (ImGui::Button("Attach")) {
    message_.clear();
    ImGui::OpenPopup(kAttachPopup);
  }
  ImGui::SetItemTooltip("Add a text file to the message. You can also drop one on the window.");
  if (!ImGui::BeginPopup(kAttachPopup)) return false;
  ImGui::TextUnformatted(kAttachPopup);
  if (ImGui::IsWindowAppearing()) {
    if (path_.empty()) path_ = documents_folder() + "/";
    ImGui::SetKeyboardFocusHere();
  }
  ImGui::SetNextItemWidth(theme.px(360));
  bool add = line_box("##attached file", path_);
  ImGui::SameLine();
  add |= ImGui::Button("Add");
  if (!message_.empty()) warning_text(theme, message_);
  const bool added = add && attach(chat, path_);
  if (added) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return added;
}

bool ChatFiles::attach(Chat& chat, const std::filesystem::path& path) {
  const Result<std::string> text = attachment(path);
  message_ = text.ok() ? std::string() : text.error().message;
  if (!text.ok()) return false;
  if (!chat.draft.empty() && chat.draft.back() != '\n') chat.draft += '\n';
  chat.draft += text.value();
  return true;
}

void ChatFiles::draw_export(const Chat& chat, const Theme& theme) {
  if (ImGui::IsWindowAppearing()) message_.clear();
  if (folder_.empty()) folder_ = documents_folder();
  ImGui::SeparatorText("Export");
  ImGui::SetNextItemWidth(theme.px(220));
  line_box("Folder", folder_);
  const auto save = [&](const char* extension, const std::string& contents) {
    const std::filesystem::path path =
        std::filesystem::path(folder_) / export_name(chat, extension);
    std::ofstream file(path, std::ios::binary);
    file << contents;
    file.close();
    message_ = fmt::format("{} {}", file ? "Saved" : "Cannot write", path.string());
  };
  if (ImGui::Button("As Markdown")) save("md", export_markdown(chat));
  ImGui::SameLine();
  if (ImGui::Button("As JSON")) save("json", export_json(chat));
  if (!message_.empty()) faint_text(message_);
}

}  // namespace hearth
