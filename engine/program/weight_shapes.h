// Formats and shapes of a model's weights, as its file's header has them: all that planning a step
// needs to know of weights. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/program/op.h"

namespace hearth {

// A matrix on the device: one segment of a weight (weight_table.h).
struct SegmentShape {
  WeightFormat format = WeightFormat::kF32;
  uint32_t rows = 0, cols = 0;

  auto operator<=>(const SegmentShape&) const = default;
};

// One segment, or several with consecutive rows if the file's formats differ.
using WeightShape = std::vector<SegmentShape>;

class WeightShapes {
 public:
  void set(const WeightName& name, WeightShape shape) { shapes_[name] = std::move(shape); }
  bool has(const WeightName& name) const { return !get(name).empty(); }
  // Empty if an optional weight is absent.
  const WeightShape& get(const WeightName& name) const {
    static const WeightShape kAbsent;
    const auto place = shapes_.find(name);
    return place == shapes_.end() ? kAbsent : place->second;
  }

 private:
  std::map<WeightName, WeightShape> shapes_;
};

}  // namespace hearth
