#include "ui/data/painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace hearth {
namespace {

constexpr uint32_t opacity_of(uint32_t color) { return color >> 24; }

// Opacity from 0 to 256, so that dividing by it is a shift.
constexpr uint32_t weight_of(uint32_t opacity) { return opacity + (opacity >> 7); }

inline uint32_t blended(uint32_t under, uint32_t over, uint32_t weight) {
  const uint32_t rest = 256 - weight;
  const uint32_t red_blue =
      (((under & 0x00ff00ffu) * rest + (over & 0x00ff00ffu) * weight) >> 8) & 0x00ff00ffu;
  const uint32_t green =
      (((under & 0x0000ff00u) * rest + (over & 0x0000ff00u) * weight) >> 8) & 0x0000ff00u;
  return 0xff000000u | red_blue | green;
}

void fill_span(uint32_t* at, int count, uint32_t color) {
  const uint32_t weight = weight_of(opacity_of(color));
  if (weight == 256)
    std::fill_n(at, count, color);
  else if (weight > 0)
    for (int i = 0; i < count; ++i) at[i] = blended(at[i], color, weight);
}

// The first pixel whose centre is not left of (above) an edge.
int first_pixel(float edge) {
  // std::ceil() is a slow function on processors that any x86-64 program must run on.
  const float centre = std::clamp(edge, -32768.0f, 32767.0f) - 0.5f;
  const int towards_zero = static_cast<int>(centre);
  return towards_zero + (centre > static_cast<float>(towards_zero) ? 1 : 0);
}

constexpr uint8_t kOpaque = 255;
constexpr PaintMask kNoMask{.texels = &kOpaque, .width = 1, .height = 1};

// A mask at one height, in texels: two of its rows and how much the lower one counts.
class MaskLine {
 public:
  MaskLine(const PaintMask& mask, float y) : last_(mask.width - 1), step_(mask.step) {
    y = std::clamp(y - 0.5f, 0.0f, static_cast<float>(mask.height - 1));
    const int top = static_cast<int>(y), bottom = std::min(top + 1, mask.height - 1);
    down_ = y - static_cast<float>(top);
    above_ = mask.texels + static_cast<int64_t>(top) * mask.width * mask.step;
    below_ = mask.texels + static_cast<int64_t>(bottom) * mask.width * mask.step;
  }

  // The opacity, interpolated between the four nearest texels: 0 to 255.
  uint32_t at(float x) const {
    x = std::clamp(x - 0.5f, 0.0f, static_cast<float>(last_));
    const int left = static_cast<int>(x);
    const int here = left * step_, next = std::min(left + 1, last_) * step_;
    const float along = x - static_cast<float>(left);
    const auto between = [](uint8_t one, uint8_t other, float share) {
      return static_cast<float>(one) + static_cast<float>(other - one) * share;
    };
    const float above = between(above_[here], above_[next], along);
    const float below = between(below_[here], below_[next], along);
    return static_cast<uint32_t>(above + (below - above) * down_ + 0.5f);
  }

 private:
  const uint8_t *above_ = nullptr, *below_ = nullptr;
  int last_, step_;
  float down_ = 0;
};

}  // namespace

PaintBox PaintBox::cut(const PaintBox& other) const {
  return {std::max(left, other.left), std::max(top, other.top), std::min(right, other.right),
          std::min(bottom, other.bottom)};
}

PaintBox PaintBox::joined(const PaintBox& other) const {
  if (empty()) return other;
  if (other.empty()) return *this;
  return {std::min(left, other.left), std::min(top, other.top), std::max(right, other.right),
          std::max(bottom, other.bottom)};
}

uint32_t Painter::ordered(uint32_t color) const {
  if (!target_.blue_first) return color;
  return (color & 0xff00ff00u) | (color & 0xffu) << 16 | (color >> 16 & 0xffu);
}

Painter::Vertex Painter::load(const PaintVertex& vertex) const {
  return {vertex.x * scale_, vertex.y * scale_, vertex.u, vertex.v, ordered(vertex.color)};
}

void Painter::fill(const PaintBox& box, uint32_t color) {
  const PaintBox area = box.cut({0, 0, target_.width, target_.height});
  for (int y = area.top; y < area.bottom; ++y)
    fill_span(row(y) + area.left, area.right - area.left, ordered(color));
}

void Painter::draw(std::span<const PaintVertex> vertices, std::span<const uint16_t> indices,
                   const PaintMask& mask, const PaintBox& clip) {
  const PaintBox area = clip.cut({0, 0, target_.width, target_.height});
  if (area.empty()) return;
  for (size_t i = 0; i + 2 < indices.size(); i += 3) {
    const Vertex a = load(vertices[indices[i]]), b = load(vertices[indices[i + 1]]),
                 c = load(vertices[indices[i + 2]]);
    // Two triangles that share the diagonal from a to c may be a rectangle.
    if (i + 5 < indices.size() && indices[i + 3] == indices[i] &&
        indices[i + 4] == indices[i + 2]) {
      const Vertex d = load(vertices[indices[i + 5]]);
      if (draw_rectangle({a, b, c, d}, mask, area)) {
        i += 3;
        continue;
      }
    }
    draw_triangle(a, b, c, mask, area);
  }
}

// Returns false if the corners are not those of an axis-aligned rectangle of one colour.
bool Painter::draw_rectangle(const Vertex (&corners)[4], const PaintMask& mask,
                             const PaintBox& clip) {
  const auto& [a, b, c, d] = corners;
  if (a.y != b.y || b.x != c.x || c.y != d.y || d.x != a.x) return false;
  if (a.color != b.color || b.color != c.color || c.color != d.color) return false;
  if (a.x > c.x || a.y > c.y) return false;
  if (opacity_of(a.color) == 0) return true;
  if (a.u == b.u && b.u == c.u && a.v == c.v && c.v == d.v) {
    const PaintBox box =
        clip.cut({first_pixel(a.x), first_pixel(a.y), first_pixel(c.x), first_pixel(c.y)});
    for (int y = box.top; y < box.bottom; ++y)
      fill_span(row(y) + box.left, box.right - box.left, a.color);
    return true;
  }
  if (a.v != b.v || b.u != c.u || c.v != d.v || d.u != a.u) return false;
  draw_glyph(a, c, mask, clip);
  return true;
}

void Painter::draw_glyph(const Vertex& from, const Vertex& to, const PaintMask& mask,
                         const PaintBox& clip) {
  const PaintBox box =
      clip.cut({first_pixel(from.x), first_pixel(from.y), first_pixel(to.x), first_pixel(to.y)});
  if (box.empty()) return;
  const float width = static_cast<float>(mask.width), height = static_cast<float>(mask.height);
  const float across = (to.u - from.u) * width / (to.x - from.x);
  const float down = (to.v - from.v) * height / (to.y - from.y);
  const float first_x =
      from.u * width + (static_cast<float>(box.left) + 0.5f - from.x) * across - 0.5f;
  const uint32_t opacity = opacity_of(from.color);
  const bool same_size = std::abs(across - 1) < 1e-3f;
  for (int y = box.top; y < box.bottom; ++y) {
    const float v = from.v * height + (static_cast<float>(y) + 0.5f - from.y) * down - 0.5f;
    uint32_t* const pixels = row(y);
    // A glyph is drawn at its own size, but may begin between two pixels.
    const float left = std::floor(first_x), top = std::floor(v + 1.0f / 512);
    const auto column = static_cast<int>(left), line = static_cast<int>(top);
    const bool inside = column >= 0 && column + (box.right - box.left) < mask.width && line >= 0 &&
                        line < mask.height;
    if (same_size && inside && v - top < 1.0f / 256) {
      const auto share = static_cast<uint32_t>((first_x - left) * 256);
      const uint8_t* texel =
          mask.texels + (static_cast<int64_t>(line) * mask.width + column) * mask.step;
      for (int x = box.left; x < box.right; ++x, texel += mask.step) {
        const uint32_t here = texel[0], next = texel[mask.step];
        if ((here | next) == 0) continue;
        const uint32_t covered = (here * (256 - share) + next * share) >> 8;
        pixels[x] = blended(pixels[x], from.color, weight_of(covered * opacity / 255));
      }
      continue;
    }
    const MaskLine covering(mask, v + 0.5f);
    for (int x = box.left; x < box.right; ++x) {
      const float u = first_x + static_cast<float>(x - box.left) * across;
      const uint32_t covered = covering.at(u + 0.5f);
      pixels[x] = blended(pixels[x], from.color, weight_of(covered * opacity / 255));
    }
  }
}

void Painter::draw_triangle(const Vertex& a, const Vertex& b, const Vertex& c,
                            const PaintMask& mask, const PaintBox& clip) {
  const float doubled = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
  if (doubled == 0 || !std::isfinite(doubled)) return;
  if (opacity_of(a.color | b.color | c.color) == 0) return;
  const int top = std::max(clip.top, first_pixel(std::min({a.y, b.y, c.y})));
  const int bottom = std::min(clip.bottom, first_pixel(std::max({a.y, b.y, c.y})));
  const bool one_color = a.color == b.color && b.color == c.color;
  const bool plain = a.u == b.u && b.u == c.u && a.v == b.v && b.v == c.v;
  // From the upper end to the lower one, so that neighbours compute the same place.
  struct Edge {
    float x, top, bottom, slope;
  };
  const auto edge = [](const Vertex& one, const Vertex& other) {
    const Vertex& upper = one.y <= other.y ? one : other;
    const Vertex& lower = one.y <= other.y ? other : one;
    return Edge{upper.x, upper.y, lower.y, (lower.x - upper.x) / (lower.y - upper.y)};
  };
  const std::array<Edge, 3> edges = {edge(a, b), edge(b, c), edge(c, a)};

  // What changes over the triangle is linear in x and y: value(x, y) = first + x * across + y *
  // down.
  struct Plane {
    float first, across, down;
    float at(float x, float y) const { return first + x * across + y * down; }
  };
  const auto plane = [&](float at_a, float at_b, float at_c) {
    const float ab = at_b - at_a, ac = at_c - at_a;
    const float across = (ab * (c.y - a.y) - ac * (b.y - a.y)) / doubled;
    const float down = (ac * (b.x - a.x) - ab * (c.x - a.x)) / doubled;
    return Plane{at_a - a.x * across - a.y * down, across, down};
  };
  // Most triangles have one colour, and many no texture: those planes are not needed then.
  std::array<Plane, 4> channels = {};
  if (!one_color)
    for (int i = 0; i < 4; ++i) {
      const auto byte = [&](uint32_t color) { return static_cast<float>(color >> 8 * i & 0xffu); };
      channels[static_cast<size_t>(i)] = plane(byte(a.color), byte(b.color), byte(c.color));
    }
  Plane u = {}, v = {};
  if (!plain) {
    const float width = static_cast<float>(mask.width), height = static_cast<float>(mask.height);
    u = plane(a.u * width, b.u * width, c.u * width);
    v = plane(a.v * height, b.v * height, c.v * height);
  }
  // Lines take their soft edges from one row of the texture.
  const bool one_row = v.across == 0 && v.down == 0;
  MaskLine covering(plain ? kNoMask : mask, v.first);

  for (int line = top; line < bottom; ++line) {
    const float y = static_cast<float>(line) + 0.5f;
    float from = INFINITY, to = -INFINITY;
    for (const Edge& side : edges) {
      if (y < side.top || y >= side.bottom) continue;
      const float x = side.x + (y - side.top) * side.slope;
      from = std::min(from, x);
      to = std::max(to, x);
    }
    if (!(from < to)) continue;
    const int left = std::max(clip.left, first_pixel(from));
    const int right = std::min(clip.right, first_pixel(to));
    if (left >= right) continue;
    uint32_t* const pixels = row(line);
    if (one_color && plain) {
      fill_span(pixels + left, right - left, a.color);
      continue;
    }
    for (int column = left; column < right; ++column) {
      const float x = static_cast<float>(column) + 0.5f;
      uint32_t color = a.color;
      if (!one_color) {
        color = 0;
        for (int i = 0; i < 4; ++i)
          color |= static_cast<uint32_t>(
                       std::clamp(channels[static_cast<size_t>(i)].at(x, y) + 0.5f, 0.0f, 255.0f))
                   << 8 * i;
      }
      uint32_t opacity = opacity_of(color);
      if (!plain) {
        if (!one_row) covering = MaskLine(mask, v.at(x, y));
        opacity = opacity * covering.at(u.at(x, y)) / 255;
        if (opacity == 0) continue;
      }
      pixels[column] = blended(pixels[column], color, weight_of(opacity));
    }
  }
}

uint64_t paint_hash(const void* data, size_t bytes, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t hash = seed + bytes;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  }
  uint64_t rest = 0;
  std::memcpy(&rest, at, bytes);
  hash = (hash ^ rest) * kOdd;
  return hash ^ hash >> 29;
}

}  // namespace hearth
