// Draws triangles into memory, for machines where the CPU draws the window: what Dear ImGui draws
// is nearly all axis-aligned rectangles, which this fills 20 times as fast as a general rasterizer.
// Triangles cover the pixels whose centres they contain, as on a GPU. Used by one thread.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

// A texture of which only the opacity is used: one byte per texel, `step` bytes apart.
struct PaintMask {
  const uint8_t* texels = nullptr;
  int width = 0, height = 0;
  int step = 1;
};

struct PaintVertex {
  float x = 0, y = 0, u = 0, v = 0;  // position in units of the window; texture from 0 to 1
  uint32_t color = 0;                // red in the lowest byte, opacity in the highest
};

// In pixels; the right and bottom edges are not part of it.
struct PaintBox {
  int left = 0, top = 0, right = 0, bottom = 0;

  bool empty() const { return left >= right || top >= bottom; }
  PaintBox cut(const PaintBox& other) const;
  PaintBox joined(const PaintBox& other) const;  // the smallest that holds both
  bool operator==(const PaintBox&) const = default;
};

// Rows of four bytes per pixel.
struct PaintTarget {
  uint32_t* pixels = nullptr;
  int width = 0, height = 0;
  bool blue_first = true;  // the order of the bytes: blue, green, red
};

class Painter {
 public:
  // `scale` is pixels per unit of the window. REQUIRES: the target's memory outlives the painter.
  Painter(const PaintTarget& target, float scale) : target_(target), scale_(scale) {}

  void fill(const PaintBox& box, uint32_t color);
  // Triangles, three indices each, clipped to `clip`.
  void draw(std::span<const PaintVertex> vertices, std::span<const uint16_t> indices,
            const PaintMask& mask, const PaintBox& clip);

 private:
  struct Vertex {
    float x, y, u, v;
    uint32_t color;
  };
  Vertex load(const PaintVertex& vertex) const;
  uint32_t ordered(uint32_t color) const;
  bool draw_rectangle(const Vertex (&corners)[4], const PaintMask& mask, const PaintBox& clip);
  void draw_glyph(const Vertex& from, const Vertex& to, const PaintMask& mask,
                  const PaintBox& clip);
  void draw_triangle(const Vertex& a, const Vertex& b, const Vertex& c, const PaintMask& mask,
                     const PaintBox& clip);
  uint32_t* row(int y) { return target_.pixels + static_cast<int64_t>(y) * target_.width; }

  PaintTarget target_;
  float scale_;
};

// A hash of bytes, to see whether a frame differs from the last one. Not for untrusted data.
uint64_t paint_hash(const void* data, size_t bytes, uint64_t seed);

}  // namespace hearth
