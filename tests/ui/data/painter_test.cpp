#include "ui/data/painter.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr uint32_t kBlack = 0xff000000, kRed = 0xff0000ff, kWhite = 0xffffffff;

struct PaintedPicture {
  static constexpr int kSide = 8;
  std::vector<uint32_t> pixels = std::vector<uint32_t>(kSide * kSide, kBlack);
  // Texel (x, y) is 16 * y + x; texel (0, 0) is opaque, as in ImGui's atlas.
  std::vector<uint8_t> texels = std::vector<uint8_t>(64);

  PaintedPicture() {
    for (size_t i = 0; i < texels.size(); ++i)
      texels[i] = static_cast<uint8_t>(16 * (i / 8) + i % 8);
    texels[0] = 255;
  }
  uint32_t at(int x, int y) const { return pixels[static_cast<size_t>(y * kSide + x)]; }
  int count(uint32_t color) const {
    return static_cast<int>(std::count(pixels.begin(), pixels.end(), color));
  }
  PaintMask mask() const { return {texels.data(), 8, 8, 1}; }
  void draw(std::span<const PaintVertex> vertices, std::span<const uint16_t> indices,
            PaintBox clip = {0, 0, kSide, kSide}, bool blue_first = false) {
    Painter painter({pixels.data(), kSide, kSide, blue_first}, 1);
    painter.draw(vertices, indices, mask(), clip);
  }
  // A rectangle of one colour; its texture coordinates are those of texel (0, 0).
  void rectangle(float left, float top, float right, float bottom, uint32_t color,
                 PaintBox clip = {0, 0, kSide, kSide}) {
    const float t = 0.5f / 8;
    const PaintVertex v[] = {{left, top, t, t, color},
                             {right, top, t, t, color},
                             {right, bottom, t, t, color},
                             {left, bottom, t, t, color}};
    const uint16_t i[] = {0, 1, 2, 0, 2, 3};
    draw(v, i, clip);
  }
};

TEST(Painter, ARectangleCoversThePixelsWhoseCentresItContains) {
  PaintedPicture picture;
  picture.rectangle(1, 2, 4, 5, kRed);
  EXPECT_EQ(picture.count(kRed), 9);
  EXPECT_EQ(picture.at(1, 2), kRed);
  EXPECT_EQ(picture.at(3, 4), kRed);
  EXPECT_EQ(picture.at(4, 4), kBlack);
  // From 5.6 on, the centre of column 5 is outside.
  picture.rectangle(5.6f, 0, 7.4f, 1, kWhite);
  EXPECT_EQ(picture.at(5, 0), kBlack);
  EXPECT_EQ(picture.at(6, 0), kWhite);
  EXPECT_EQ(picture.at(7, 0), kBlack);
}

TEST(Painter, NothingIsDrawnOutsideTheClipAndTheTarget) {
  PaintedPicture picture;
  picture.rectangle(-100, -100, 100, 100, kRed, {2, 3, 4, 5});
  EXPECT_EQ(picture.count(kRed), 4);
  EXPECT_EQ(picture.at(2, 3), kRed);
  picture.rectangle(-100, -100, 100, 100, kRed, {-50, -50, 50, 50});
  EXPECT_EQ(picture.count(kRed), 64);
}

TEST(Painter, HalfOpaqueColoursAreMixedWithWhatIsThere) {
  PaintedPicture picture;
  picture.rectangle(0, 0, 8, 8, 0x80ffffff);
  const uint32_t mixed = picture.at(3, 3);
  EXPECT_EQ(mixed >> 24, 0xffu);
  EXPECT_NEAR(mixed & 0xff, 128, 1);
  EXPECT_NEAR(mixed >> 16 & 0xff, 128, 1);
}

TEST(Painter, BytesCanBeInTheOrderOfBlueGreenRed) {
  PaintedPicture picture;
  Painter painter({picture.pixels.data(), 8, 8, true}, 1);
  painter.fill({0, 0, 1, 1}, 0xff332211);
  EXPECT_EQ(picture.at(0, 0), 0xff112233);
}

TEST(Painter, PositionsAreScaled) {
  PaintedPicture picture;
  Painter painter({picture.pixels.data(), 8, 8, false}, 2);
  const PaintVertex v[] = {
      {1, 1, 0, 0, kRed}, {2, 1, 0, 0, kRed}, {2, 2, 0, 0, kRed}, {1, 2, 0, 0, kRed}};
  const uint16_t i[] = {0, 1, 2, 0, 2, 3};
  painter.draw(v, i, picture.mask(), {0, 0, 8, 8});
  EXPECT_EQ(picture.count(kRed), 4);
  EXPECT_EQ(picture.at(3, 3), kRed);
}

// A glyph on whole pixels is copied texel by texel; half a pixel further, it is the mean of two.
TEST(Painter, GlyphsKeepTheirTexelsAndMayBeginBetweenPixels) {
  const auto glyph = [](PaintedPicture& picture, float x) {
    const PaintVertex v[] = {{x, 1, 2.0f / 8, 1.0f / 8, kWhite},
                             {x + 4, 1, 6.0f / 8, 1.0f / 8, kWhite},
                             {x + 4, 4, 6.0f / 8, 4.0f / 8, kWhite},
                             {x, 4, 2.0f / 8, 4.0f / 8, kWhite}};
    const uint16_t i[] = {0, 1, 2, 0, 2, 3};
    picture.draw(v, i);
  };
  PaintedPicture whole, half;
  glyph(whole, 3);
  for (int y = 1; y < 4; ++y)
    for (int x = 3; x < 7; ++x)
      EXPECT_NEAR(whole.at(x, y) & 0xff, 16 * y + (x - 1), 1) << x << ' ' << y;
  glyph(half, 2.5f);
  for (int x = 3; x < 6; ++x) EXPECT_NEAR(half.at(x, 2) & 0xff, 32 + x - 0.5, 1.5) << x;
}

// Triangles that share an edge cover each pixel once: a half-opaque square has one colour.
TEST(Painter, NeighbouringTrianglesNeitherOverlapNorLeaveGaps) {
  PaintedPicture picture;
  const PaintVertex v[] = {{0.3f, 0.2f, 0, 0, 0x80ffffff},
                           {7.6f, 0.9f, 0, 0, 0x80ffffff},
                           {7.1f, 7.8f, 0, 0, 0x80ffffff},
                           {0.4f, 7.3f, 0, 0, 0x80ffffff},
                           {3.7f, 4.1f, 0, 0, 0x80ffffff}};
  const uint16_t i[] = {0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4};
  picture.draw(v, i);
  const uint32_t mixed = picture.at(4, 4);
  EXPECT_NEAR(mixed & 0xff, 128, 1);
  EXPECT_EQ(picture.count(mixed) + picture.count(kBlack), 64);
  EXPECT_GT(picture.count(mixed), 44);
}

TEST(Painter, ColoursAndTexturesAreInterpolatedOverATriangle) {
  PaintedPicture picture;
  const PaintVertex faded[] = {
      {0, 0, 0, 0, kWhite}, {8, 0, 0, 0, 0x00ffffff}, {0, 8, 0, 0, kWhite}};
  const uint16_t i[] = {0, 1, 2};
  picture.draw(faded, i);
  EXPECT_NEAR(picture.at(0, 0) & 0xff, 255 * (1 - 0.5 / 8), 2);
  EXPECT_NEAR(picture.at(4, 1) & 0xff, 255 * (1 - 4.5 / 8), 2);
  PaintedPicture textured;
  // One texel per pixel, from texel (0, 0) on.
  const PaintVertex corner[] = {{0, 0, 0, 0, kWhite}, {8, 0, 1, 0, kWhite}, {0, 8, 0, 1, kWhite}};
  textured.draw(corner, i);
  EXPECT_NEAR(textured.at(2, 3) & 0xff, 50, 1);
}

TEST(PaintHash, SeesEveryByte) {
  std::array<unsigned char, 21> bytes = {};
  const uint64_t before = paint_hash(bytes.data(), bytes.size(), 7);
  EXPECT_EQ(before, paint_hash(bytes.data(), bytes.size(), 7));
  for (unsigned char& byte : bytes) {
    byte = 1;
    EXPECT_NE(before, paint_hash(bytes.data(), bytes.size(), 7));
    byte = 0;
  }
  EXPECT_NE(before, paint_hash(bytes.data(), bytes.size() - 1, 7));
}

}  // namespace
}  // namespace hearth
