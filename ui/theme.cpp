#include "ui/theme.h"

#include <array>
#include <filesystem>
#include <span>

namespace hearth {
namespace {

constexpr ImU32 rgb(uint32_t hex) {
  return IM_COL32(hex >> 16 & 0xff, hex >> 8 & 0xff, hex & 0xff, 0xff);
}

struct PhaseStyle {
  const char* name;
  ImU32 dark, light;
};
constexpr std::array<PhaseStyle, static_cast<size_t>(PhaseColor::kCount)> kPhases = {{
    {"prefill", rgb(0x56b4e9), rgb(0x0072b2)},
    {"decode", rgb(0x2fbf8f), rgb(0x009e73)},
    {"waiting", rgb(0x5b6472), rgb(0xb9c0ca)},
    {"preempted", rgb(0xe8743b), rgb(0xd55e00)},
    {"swapped", rgb(0xcc79a7), rgb(0xb0578b)},
    {"padding", rgb(0x8a6d3b), rgb(0xc9a66b)},
    {"prefix cache hit", rgb(0xf0e442), rgb(0xd9b800)},
    {"free", rgb(0x2a303b), rgb(0xe6e9ee)},
    {"cached", rgb(0x7d8fb3), rgb(0x9aaccf)},
}};

// Okabe and Ito's colours, and four more that differ in brightness.
constexpr std::array<uint32_t, 11> kDark = {0x56b4e9, 0xe69f00, 0x2fbf8f, 0xcc79a7,
                                            0xf0e442, 0xe8743b, 0x8fa8ff, 0xb5e48c,
                                            0xd8a0df, 0x7fdbda, 0xc9b79c};
constexpr std::array<uint32_t, 11> kLight = {0x0072b2, 0xe69f00, 0x009e73, 0xb0578b,
                                             0xb8a500, 0xd55e00, 0x4455cc, 0x5b8c1d,
                                             0x8e4fa0, 0x1b8a8a, 0x7a6a4f};

ImVec4 color(uint32_t hex, float opacity = 1) {
  ImVec4 result = ImGui::ColorConvertU32ToFloat4(rgb(hex));
  result.w = opacity;
  return result;
}

struct Palette {
  uint32_t window, panel, raised, border, text, faint, accent, accent_strong;
};
constexpr Palette kDarkPalette = {0x14171c, 0x1b1f26, 0x262c36, 0x333b48,
                                  0xe6e9ee, 0x8b95a5, 0x2d5f8a, 0x3f86c2};
constexpr Palette kLightPalette = {0xeef0f3, 0xfafbfc, 0xe3e7ed, 0xc6ccd6,
                                   0x1b1f26, 0x6a7485, 0x9cc7ea, 0x4f9bd6};

void set_colors(const Palette& p) {
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
                 ImGuiCol_FrameBgActive, ImGuiCol_TextSelectedBg, ImGuiCol_SeparatorHovered});
  set(p.accent_strong,
      {ImGuiCol_ButtonActive, ImGuiCol_HeaderActive, ImGuiCol_CheckMark, ImGuiCol_SliderGrab,
       ImGuiCol_SliderGrabActive, ImGuiCol_PlotHistogram, ImGuiCol_TabSelectedOverline,
       ImGuiCol_NavCursor, ImGuiCol_TextLink, ImGuiCol_SeparatorActive,
       ImGuiCol_ScrollbarGrabActive, ImGuiCol_DragDropTarget});
}

constexpr float kTextSize = 15;

struct FontFile {
  const char* path;
  uint32_t number = 0;  // index of the font in a collection
  float scale = 1;      // compensates for smaller glyphs at the same line height
};

constexpr std::array kTextFonts = {
    FontFile{"/usr/share/fonts/truetype/inter/Inter-Regular.ttf"},
    FontFile{"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"},
    FontFile{"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/TTF/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/truetype/ubuntu/Ubuntu-R.ttf"},
};

// Chinese, Japanese and Korean, which the text fonts lack. Font 2 of Noto's collection uses the
// simplified Chinese forms of shared characters.
constexpr std::array kEastAsianFonts = {
    FontFile{"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"},
    FontFile{"/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc"},
    FontFile{"/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"},
};

constexpr std::array kSymbolFonts = {
    FontFile{"/usr/share/fonts/truetype/ancient-scripts/Symbola_hint.ttf"},
    FontFile{"/usr/share/fonts/gdouros-symbola/Symbola.ttf"},
    FontFile{"/usr/share/fonts/google-noto-emoji/NotoEmoji-Regular.ttf"},
};

// Loads the first of these files that exists, as a new font or merged into the last one. Returns
// false if there is none.
bool load_font(std::span<const FontFile> files, bool merge) {
  for (const FontFile& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file.path, error)) continue;
    ImFontConfig config;
    config.MergeMode = merge;
    config.FontNo = file.number;
    if (ImGui::GetIO().Fonts->AddFontFromFileTTF(file.path, file.scale * kTextSize, &config) !=
        nullptr)
      return true;
  }
  return false;
}

}  // namespace

const char* phase_name(PhaseColor phase) { return kPhases[static_cast<size_t>(phase)].name; }

ImU32 Theme::phase_color(PhaseColor phase) const {
  const PhaseStyle& style = kPhases[static_cast<size_t>(phase)];
  return dark ? style.dark : style.light;
}

ImU32 Theme::sequence_color(RequestId request) const {
  return series_color(static_cast<int>(request % kDark.size()));
}

ImU32 Theme::series_color(int index) const {
  const size_t place = static_cast<size_t>(index) % kDark.size();
  return rgb(dark ? kDark[place] : kLight[place]);
}

ImU32 Theme::text_color() const { return ImGui::GetColorU32(ImGuiCol_Text); }
ImU32 Theme::faint_color() const { return ImGui::GetColorU32(ImGuiCol_Border); }
ImU32 Theme::warning_color() const { return rgb(dark ? 0xe8743b : 0xd55e00); }

void load_fonts() {
  if (!load_font(kTextFonts, false)) ImGui::GetIO().Fonts->AddFontDefault();
  load_font(kEastAsianFonts, true);
  load_font(kSymbolFonts, true);
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
  set_colors(theme.dark ? kDarkPalette : kLightPalette);
}

}  // namespace hearth
