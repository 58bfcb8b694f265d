#include "ui/panels/chat_widgets.h"

#include <algorithm>
#include <string_view>

#include <imgui_internal.h>

#include "ui/fonts.h"
#include "ui/item_log.h"

namespace hearth {
namespace {

struct Editing {
  std::string& text;
  bool entered = false;
  SoftWrap* wrap = nullptr;
};

float plain_advance(char32_t character) { return advance_of(character, TextStyle()); }

int grow(ImGuiInputTextCallbackData* data) {
  auto& editing = *static_cast<Editing*>(data->UserData);
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    editing.text.resize(static_cast<size_t>(data->BufTextLen));
    data->Buf = editing.text.data();
    return 0;
  }
  if (data->EventFlag == ImGuiInputTextFlags_CallbackEdit && editing.wrap != nullptr) {
    SoftWrap& wrap = *editing.wrap;
    const size_t cursor =
        wrap.edit({data->Buf, static_cast<size_t>(data->BufTextLen)},
                  static_cast<size_t>(data->CursorPos), wrap.width(), plain_advance);
    if (wrap.shown() == std::string_view(data->Buf, static_cast<size_t>(data->BufTextLen)))
      return 0;
    data->DeleteChars(0, data->BufTextLen);
    data->InsertChars(0, wrap.shown().data(), wrap.shown().data() + wrap.shown().size());
    data->CursorPos = data->SelectionStart = data->SelectionEnd = static_cast<int>(cursor);
    return 0;
  }
  // Only the Enter key sends; a pasted line feed is text.
  if (data->EventFlag == ImGuiInputTextFlags_CallbackCharFilter && data->EventChar == '\n' &&
      (ImGui::IsKeyPressed(ImGuiKey_Enter) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter)) &&
      !ImGui::GetIO().KeyShift) {
    editing.entered = true;
    return 1;
  }
  return 0;
}

// ImGui's Escape restores the text from before the edit. Here Escape stops an answer, so text typed
// meanwhile must stay.
bool undone_by_escape() {
  return ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
}

}  // namespace

MessageBox message_box(const char* label, std::string& text, SoftWrap& wrap, ImVec2 size,
                       const char* hint) {
  const ImGuiStyle& style = ImGui::GetStyle();
  const float room = size.x > 0 ? size.x : ImGui::GetContentRegionAvail().x;
  const float width = std::max(room - 2 * style.FramePadding.x - style.ScrollbarSize, 1.0f);
  if (wrap.text() != text || wrap.width() != width) {
    wrap.set(text, width, plain_advance);
    // An active widget keeps its own copy of the text.
    if (ImGuiInputTextState* state = ImGui::GetInputTextState(ImGui::GetID(label)))
      state->ReloadUserBufAndMoveToEnd();
  }
  std::string shown = wrap.shown();
  Editing editing{shown, false, &wrap};
  MessageBox box;
  box.edited = ImGui::InputTextMultiline(
      label, shown.data(), shown.capacity() + 1, size,
      ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_CallbackCharFilter |
          ImGuiInputTextFlags_CallbackEdit | ImGuiInputTextFlags_NoHorizontalScroll,
      grow, &editing);
  if (box.edited && undone_by_escape()) {
    wrap.set(text, width, plain_advance);
    box.edited = false;
  }
  if (box.edited) text = wrap.text();
  box.active = ImGui::IsItemActive();
  box.entered = editing.entered;
  if (text.empty() && hint != nullptr) {
    const ImVec2 corner = ImGui::GetItemRectMin(), padding = ImGui::GetStyle().FramePadding;
    ImGui::PushClipRect(corner, ImGui::GetItemRectMax(), true);
    ImGui::GetWindowDrawList()->AddText({corner.x + padding.x, corner.y + padding.y},
                                        ImGui::GetColorU32(ImGuiCol_TextDisabled), hint);
    ImGui::PopClipRect();
  }
  return box;
}

bool line_box(const char* label, std::string& text) {
  Editing editing{text};
  return ImGui::InputText(label, text.data(), text.capacity() + 1,
                          ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_EnterReturnsTrue,
                          grow, &editing);
}

bool text_box(const char* label, std::string& text, ImVec2 size) {
  const std::string before = text;
  Editing editing{text};
  const bool edited = ImGui::InputTextMultiline(label, text.data(), text.capacity() + 1, size,
                                                ImGuiInputTextFlags_CallbackResize, grow, &editing);
  if (!edited || !undone_by_escape()) return edited;
  text = before;
  return false;
}

void faint_text(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetColorU32(ImGuiCol_TextDisabled));
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

void warning_text(const Theme& theme, const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, theme.warning_color());
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

ImU32 style_color(ImGuiCol color, float opacity) { return ImGui::GetColorU32(color, opacity); }

ImU32 with_opacity(ImU32 color, float opacity) {
  ImVec4 parts = ImGui::ColorConvertU32ToFloat4(color);
  parts.w *= opacity;
  return ImGui::ColorConvertFloat4ToU32(parts);
}

bool is_logging() { return ImGui::GetCurrentContext()->TestEngineHookItems; }

void name_last_item(const std::string& name) {
  if (is_logging()) ItemLog::instance().name(ImGui::GetItemID(), name);
}

bool begin_combo(const std::string& label, const std::string& preview) {
  const bool open = ImGui::BeginCombo(label.c_str(), preview.c_str());
  // While the combo is open, the last item is one of its entries.
  if (!open) name_last_item(label);
  return open;
}

void log_place(const std::string& name, ImVec2 min, ImVec2 max) {
  if (!is_logging()) return;
  ImRect visible(min, max);
  visible.ClipWith(ImGui::GetCurrentWindow()->ClipRect);
  const ImGuiID id = ImGui::GetID(name.c_str());
  ItemLog::instance().add(id, visible.Min, visible.Max);
  ItemLog::instance().name(id, name);
}

}  // namespace hearth
