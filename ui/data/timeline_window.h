// Which columns of the timeline are in sight: follows the newest, or stays where it was put. Pure
// arithmetic, in columns and pixels.
#pragma once

#include <cstdint>

namespace hearth {

class TimelineWindow {
 public:
  static constexpr double kMinPixels = 0.25, kMaxPixels = 48;  // pixels a column

  // The columns there are, [first, end).
  void update(uint64_t first, uint64_t end);
  // Pixels there are for columns.
  void set_width(double pixels);

  bool following() const { return following_; }
  void follow(bool follow);
  // By so many columns. Moving back freezes; moving up to the newest follows again.
  void move(double columns);
  // A column becomes so many times as wide. What is at this share of the width stays there; while
  // following it is the right edge.
  void zoom(double factor, double at);

  // The whole columns that are seen at least in part, [first_seen(), end_seen()).
  uint64_t first_visible() const;
  uint64_t end_visible() const;
  // The column at a place, or the end of all where there is none.
  uint64_t column_at(double place) const;

  double from() const { return from_; }  // the column at the left edge, with its fraction
  double columns() const { return width_ / pixels_; }
  double pixels_per_column() const { return pixels_; }
  double width() const { return width_; }
  float x_of(double column, float left) const {
    return left + static_cast<float>((column - from_) * pixels_);
  }
  double column_of(float x, float left) const {
    return from_ + static_cast<double>(x - left) / pixels_;
  }

 private:
  void keep_inside();

  double pixels_ = 8, width_ = 1, from_ = 0;
  double first_ = 0, end_ = 0;
  bool following_ = true;
};

}  // namespace hearth
