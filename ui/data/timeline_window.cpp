#include "ui/data/timeline_window.h"

#include <algorithm>
#include <cmath>

namespace hearth {

void TimelineWindow::update(uint64_t first, uint64_t end) {
  // A different engine: its columns count from 0 again.
  if (static_cast<double>(end) < end_) following_ = true;
  first_ = static_cast<double>(first);
  end_ = static_cast<double>(end);
  keep_inside();
}

void TimelineWindow::set_width(double pixels) {
  width_ = std::max(pixels, 1.0);
  keep_inside();
}

void TimelineWindow::follow(bool follow) {
  following_ = follow;
  keep_inside();
}

void TimelineWindow::move(double columns) {
  following_ = false;
  const double newest = std::max(first_, end_ - this->columns());
  from_ += columns;
  if (columns > 0 && from_ >= newest) following_ = true;
  keep_inside();
}

void TimelineWindow::zoom(double factor, double at) {
  const double kept = following_ ? 1 : std::clamp(at, 0.0, 1.0);
  const double column = from_ + kept * columns();
  pixels_ = std::clamp(pixels_ * factor, kMinPixels, kMaxPixels);
  from_ = column - kept * columns();
  keep_inside();
}

uint64_t TimelineWindow::first_visible() const {
  return static_cast<uint64_t>(std::clamp(from_, first_, end_));
}

uint64_t TimelineWindow::end_visible() const {
  return static_cast<uint64_t>(std::clamp(std::ceil(from_ + columns()), first_, end_));
}

uint64_t TimelineWindow::column_at(double position) const {
  return static_cast<uint64_t>(position < first_ || position > end_ ? end_ : position);
}

void TimelineWindow::keep_inside() {
  const double newest = std::max(first_, end_ - columns());
  from_ = following_ ? newest : std::clamp(from_, first_, newest);
}

}  // namespace hearth
