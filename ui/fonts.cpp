#include "ui/fonts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/host/read_file.h"

// Empty if the font was not installed when the program was built.
extern "C" {
extern const unsigned char hearth_font_text_begin[], hearth_font_text_end[];
extern const unsigned char hearth_font_bold_begin[], hearth_font_bold_end[];
extern const unsigned char hearth_font_mono_begin[], hearth_font_mono_end[];
extern const unsigned char hearth_font_more_begin[], hearth_font_more_end[];
}

namespace hearth {
namespace {

using FontBytes = std::span<const unsigned char>;

struct FontFile {
  const char* path;
  uint32_t number = 0;  // index of the font in a collection
  float scale = 1;      // compensates for smaller glyphs at the same line height
};

// Used if nothing is embedded.
constexpr std::array kTextFiles = {
    FontFile{"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf"},
    FontFile{"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/TTF/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf"},
    FontFile{"/usr/share/fonts/truetype/ubuntu/Ubuntu-R.ttf"},
};

// Chinese, Japanese and Korean. Font 2 of Noto's collection uses the simplified Chinese forms of
// shared characters.
constexpr std::array kEastAsianFiles = {
    FontFile{"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/google-noto-cjk/NotoSansCJK-Regular.ttc", 2, 1.25f},
    FontFile{"/usr/share/fonts/truetype/wqy/wqy-microhei.ttc"},
    FontFile{"/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc"},
    FontFile{"/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf"},
};

constexpr std::array kSymbolFiles = {
    FontFile{"/usr/share/fonts/truetype/ancient-scripts/Symbola_hint.ttf"},
    FontFile{"/usr/share/fonts/gdouros-symbola/Symbola.ttf"},
    FontFile{"/usr/share/fonts/google-noto-emoji/NotoEmoji-Regular.ttf"},
};

struct LoadedFile {
  std::string bytes;
  FontFile file{""};
};

struct LoadedFonts {
  ImFont* regular = nullptr;
  ImFont* bold = nullptr;
  ImFont* mono = nullptr;
  std::vector<LoadedFile> files;  // ImGui reads glyphs from them as they are needed
};

LoadedFonts& loaded_fonts() {
  static LoadedFonts fonts;
  return fonts;
}

// Reads the first of these files that exists; null if there is none.
const LoadedFile* read_first(std::span<const FontFile> files) {
  constexpr uint64_t kMostBytes = 64 << 20;
  for (const FontFile& file : files) {
    std::error_code error;
    if (!std::filesystem::exists(file.path, error)) continue;
    auto bytes = read_file(file.path, {.most_bytes = kMostBytes});
    if (!bytes.ok()) continue;
    loaded_fonts().files.push_back({std::move(bytes).value(), file});
    return &loaded_fonts().files.back();
  }
  return nullptr;
}

// Adds a font, or what the last one lacks. Returns null without bytes.
ImFont* add_font(FontBytes bytes, bool merge, uint32_t number = 0, float scale = 1) {
  if (bytes.empty()) return nullptr;
  ImFontConfig config;
  config.MergeMode = merge;
  config.FontNo = number;
  config.FontDataOwnedByAtlas = false;
  // ImGui does not write to the bytes.
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<unsigned char*>(bytes.data()),
                                                    static_cast<int>(bytes.size()),
                                                    scale * kTextSize, &config);
}

FontBytes bytes_of(const LoadedFile& file) {
  return {reinterpret_cast<const unsigned char*>(file.bytes.data()), file.bytes.size()};
}

}  // namespace

void load_fonts() {
  LoadedFonts& fonts = loaded_fonts();
  fonts = {};
  fonts.files.reserve(8);  // so that pointers to them stay valid
  const FontBytes text(hearth_font_text_begin, hearth_font_text_end);
  const FontBytes bold(hearth_font_bold_begin, hearth_font_bold_end);
  const FontBytes mono(hearth_font_mono_begin, hearth_font_mono_end);
  const FontBytes more(hearth_font_more_begin, hearth_font_more_end);
  std::vector<const LoadedFile*> scripts;
  for (const LoadedFile* file : {read_first(kEastAsianFiles), read_first(kSymbolFiles)})
    if (file != nullptr) scripts.push_back(file);
  const LoadedFile* const system = text.empty() && more.empty() ? read_first(kTextFiles) : nullptr;

  // The first of these that there is, and then everything else for the characters it lacks.
  const auto load = [&](std::initializer_list<FontBytes> choices) -> ImFont* {
    ImFont* font = nullptr;
    for (const FontBytes& choice : choices)
      if (font == nullptr) font = add_font(choice, false);
    if (font == nullptr && system != nullptr) font = add_font(bytes_of(*system), false);
    if (font == nullptr) font = ImGui::GetIO().Fonts->AddFontDefault();
    add_font(more, true);
    for (const LoadedFile* file : scripts)
      add_font(bytes_of(*file), true, file->file.number, file->file.scale);
    return font;
  };
  fonts.regular = load({text, more});
  fonts.bold = load({bold, text, more});
  fonts.mono = load({mono, text, more});
}

ImFont* bold_font() { return loaded_fonts().bold; }

ImFont* font_of(const TextStyle& style) {
  const LoadedFonts& fonts = loaded_fonts();
  return style.mono ? fonts.mono : style.bold ? fonts.bold : fonts.regular;
}

float font_size_of(const TextStyle& style) {
  constexpr std::array kHeadings = {1.0f, 1.35f, 1.2f, 1.08f};
  const float size = ImGui::GetFontSize();
  if (style.heading > 0) return std::round(size * kHeadings[std::min<size_t>(style.heading, 3)]);
  return style.mono ? std::round(size * 0.92f) : size;
}

float advance_of(char32_t character, const TextStyle& style) {
  const float size = font_size_of(style);
  ImFontBaked* const baked = font_of(style)->GetFontBaked(size);
  return size / baked->Size * baked->GetCharAdvance(static_cast<ImWchar>(character));
}

float large_text_size() { return std::round(ImGui::GetFontSize() * 1.5f); }

}  // namespace hearth
