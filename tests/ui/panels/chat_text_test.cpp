// Where the mouse finds text, compared with where ImGui draws its glyphs.
#include "ui/panels/chat_text.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <imgui.h>

#include "ui/fonts.h"

namespace hearth {
namespace {

class ChatTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {1200, 800};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
    load_fonts();
  }
  void TearDown() override {
    for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
    ImGui::DestroyContext();
  }

  // Draws text at an odd place and returns the byte found at the centre of each glyph, in drawing
  // order.
  std::vector<std::optional<size_t>> draw(const std::string& text, bool markdown, float scale) {
    theme_.scale = scale;
    apply_theme(theme_);
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("text");
    metrics_ = chat_metrics(theme_);
    wrap_text(theme_, lines_, text, markdown, 700);
    ImDrawList& list = *ImGui::GetWindowDrawList();
    const int first = list.VtxBuffer.Size;
    draw_text(theme_, placed(text), IM_COL32_WHITE);
    std::vector<std::optional<size_t>> found;
    // Four corners per glyph; rectangles behind text have one texture coordinate.
    for (int i = first; i + 3 < list.VtxBuffer.Size; i += 4) {
      const ImDrawVert &a = list.VtxBuffer[i], &c = list.VtxBuffer[i + 2];
      if (a.uv.x != c.uv.x)
        found.push_back(placed(text).byte_at({(a.pos.x + c.pos.x) / 2, (a.pos.y + c.pos.y) / 2}));
    }
    ImGui::End();
    ImGui::EndFrame();
    return found;
  }
  PlacedText placed(const std::string& text) const { return {lines_, text, {31, 17}, metrics_}; }

  Theme theme_;
  RichLines lines_;
  RichMetrics metrics_;
};

// Widths were rounded per token, and the highlight drifted along the line.
TEST_F(ChatTextTest, TheByteUnderAGlyphIsItsOwnToTheEndOfALongLine) {
  const std::string text =
      "Once upon a time a little fox with a thin red kite ran up the hill, all in a trill of "
      "will-o'-the-wisps, and then it filled its little bill until it was still.\nThe end.";
  for (const float scale : {1.0f, 1.25f, 1.37f, 2.0f}) {
    const auto found = draw(text, false, scale);
    size_t glyph = 0;
    for (size_t byte = 0; byte < text.size(); ++byte) {
      if (text[byte] == ' ' || text[byte] == '\n') continue;
      ASSERT_LT(glyph, found.size());
      ASSERT_EQ(found[glyph++], byte) << "scale " << scale;
    }
    EXPECT_EQ(glyph, found.size());
  }
}

TEST_F(ChatTextTest, BoldTextAndCodeAreFoundWhereTheyAreDrawn) {
  if (!has_markdown()) GTEST_SKIP() << "built without md4c";
  const std::string text = "Little **illicit bold** words and `some code` in a till.";
  std::string letters;
  for (const auto& byte : draw(text, true, 1.25f)) {
    ASSERT_TRUE(byte);
    letters += text[*byte];
  }
  EXPECT_EQ(letters, "Littleillicitboldwordsandsomecodeinatill.");
}

TEST_F(ChatTextTest, ASearchIsFoundInAnyCase) {
  const std::string text = "The fox saw the Fox.";
  theme_.scale = 1;
  apply_theme(theme_);
  ImGui::NewFrame();
  ImGui::Begin("text");
  metrics_ = chat_metrics(theme_);
  wrap_text(theme_, lines_, text, false, 700);
  EXPECT_EQ(mark_search(theme_, placed(text), "FOX"), 2u);
  EXPECT_EQ(mark_search(theme_, placed(text), "wolf"), 0u);
  ImGui::End();
  ImGui::EndFrame();
}

}  // namespace
}  // namespace hearth
