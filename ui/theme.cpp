#include "ui/theme.h"

#include <initializer_list>

#include "ui/fonts.h"

namespace hearth {
namespace {

constexpr ImU32 rgb(uint32_t hex) {
  return IM_COL32(hex >> 16 & 0xff, hex >> 8 & 0xff, hex & 0xff, 0xff);
}

ImVec4 color(uint32_t hex, float opacity = 1) {
  ImVec4 result = ImGui::ColorConvertU32ToFloat4(rgb(hex));
  result.w = opacity;
  return result;
}

void set_colors(const Chrome& p) {
  ImVec4* colors = ImGui::GetStyle().Colors;
  const auto set = [&](uint32_t hex, std::initializer_list<ImGuiCol> which, float opacity = 1) {
    for (const ImGuiCol one : which) colors[one] = color(hex, opacity);
  };
  set(p.window, {ImGuiCol_WindowBg, ImGuiCol_MenuBarBg, ImGuiCol_TitleBg, ImGuiCol_ScrollbarBg});
  set(p.panel, {ImGuiCol_ChildBg, ImGuiCol_PopupBg, ImGuiCol_TitleBgActive, ImGuiCol_TabSelected,
                ImGuiCol_TabDimmedSelected, ImGuiCol_TableRowBg});
  set(p.raised, {ImGuiCol_FrameBg, ImGuiCol_Button, ImGuiCol_Tab, ImGuiCol_TabDimmed,
                 ImGuiCol_TableHeaderBg, ImGuiCol_Header});
  set(p.raised, {ImGuiCol_TableRowBgAlt}, 0.35f);
  set(p.border, {ImGuiCol_Border, ImGuiCol_Separator, ImGuiCol_ScrollbarGrab,
                 ImGuiCol_TableBorderStrong, ImGuiCol_TableBorderLight, ImGuiCol_FrameBgHovered});
  set(p.text, {ImGuiCol_Text, ImGuiCol_InputTextCursor});
  set(p.faint, {ImGuiCol_TextDisabled, ImGuiCol_ScrollbarGrabHovered});
  set(p.accent, {ImGuiCol_ButtonHovered, ImGuiCol_HeaderHovered, ImGuiCol_TabHovered,
                 ImGuiCol_FrameBgActive, ImGuiCol_TextSelectedBg, ImGuiCol_SeparatorHovered,
                 // The number of a slider is written over its grab.
                 ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive});
  set(p.accent_strong,
      {ImGuiCol_ButtonActive, ImGuiCol_HeaderActive, ImGuiCol_CheckMark, ImGuiCol_PlotHistogram,
       ImGuiCol_TabSelectedOverline, ImGuiCol_NavCursor, ImGuiCol_TextLink,
       ImGuiCol_SeparatorActive, ImGuiCol_ScrollbarGrabActive, ImGuiCol_DragDropTarget});
}

}  // namespace

ImU32 Theme::phase_color(PhaseColor phase) const {
  return rgb(kPhaseShades[static_cast<size_t>(phase)].of(dark));
}

ImU32 Theme::sequence_color(RequestId request) const {
  return rgb(kSequenceShades[request % kSequenceShades.size()].of(dark));
}

ImU32 Theme::series_color(int index) const {
  return rgb(kSequenceShades[static_cast<size_t>(index) % kSequenceShades.size()].of(dark));
}

ImU32 Theme::memory_color(std::string_view kind) const {
  const size_t index = kind == "weights" ? 0 : kind == "KV cache" ? 1 : 2;
  return rgb(kMemoryShades[index].of(dark));
}

ImU32 Theme::percentile_color(int index) const {
  return rgb(kPercentileShades[static_cast<size_t>(index) % kPercentileShades.size()].of(dark));
}

ImU32 Theme::gpu_time_color() const { return rgb(kGpuTime.of(dark)); }
ImU32 Theme::planning_time_color() const { return rgb(kPlanningTime.of(dark)); }

ImU32 Theme::on_accent_color() const {
  return rgb(dark ? kDarkChrome.on_accent : kLightChrome.on_accent);
}
ImU32 Theme::text_color() const { return ImGui::GetColorU32(ImGuiCol_Text); }
ImU32 Theme::faint_color() const { return ImGui::GetColorU32(ImGuiCol_Border); }
ImU32 Theme::warning_color() const {
  return rgb(dark ? kDarkChrome.warning : kLightChrome.warning);
}

void apply_theme(const Theme& theme) {
  ImGuiStyle style;
  style.FontSizeBase = kTextSize;
  style.FontScaleDpi = theme.scale;
  style.WindowPadding = {10, 8};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {6, 4};
  style.WindowRounding = style.ChildRounding = style.PopupRounding = 6;
  style.FrameRounding = style.GrabRounding = style.TabRounding = 4;
  style.ScrollbarSize = 11;
  style.ScrollbarRounding = 6;
  style.WindowBorderSize = style.ChildBorderSize = 1;
  style.FrameBorderSize = 0;
  style.TabBarBorderSize = 1;
  style.TabBarOverlineSize = 2;
  style.CellPadding = {6, 3};
  style.ScaleAllSizes(theme.scale);
  // Without this, ImGui would restore the old font size in the next frame.
  style._NextFrameFontSizeBase = style.FontSizeBase;
  ImGui::GetStyle() = style;
  if (theme.dark)
    ImGui::StyleColorsDark();
  else
    ImGui::StyleColorsLight();
  set_colors(theme.dark ? kDarkChrome : kLightChrome);
}

}  // namespace hearth
