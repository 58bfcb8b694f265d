// The visible range of timeline columns: follows the newest one, or stays where the user put it.
// Pure arithmetic in columns and pixels.
#pragma once

#include <cstdint>

namespace hearth {

class TimelineWindow {
 public:
  static constexpr double kMinPixels = 0.25, kMaxPixels = 48;  // per column

  // Sets the existing columns, [first, end).
  void update(uint64_t first, uint64_t end);
  // Sets the width available for columns.
  void set_width(double pixels);

  bool following() const { return following_; }
  void follow(bool follow);
  // Moving back stops following; moving to the newest column follows again.
  void move(double columns);
  // Scales the column width by `factor`. The column at the fraction `at` of the width stays in
  // place; while following, the right edge does.
  void zoom(double factor, double at);

  // The columns that are at least partly visible, [first_visible(), end_visible()).
  uint64_t first_visible() const;
  uint64_t end_visible() const;
  // The column at a fractional position, or the end of all columns if there is none.
  uint64_t column_at(double position) const;

  double from() const { return from_; }  // the fractional column at the left edge
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
