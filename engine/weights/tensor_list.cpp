#include "engine/weights/tensor_list.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {

Status refuse_overlaps(std::span<const ModelTensor> tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tensors[a].bytes.data() < tensors[b].bytes.data();
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ModelTensor& before = tensors[order[i - 1]];
    const ModelTensor& after = tensors[order[i]];
    if (before.bytes.data() + before.bytes.size() > after.bytes.data())
      return Error{ErrorKind::kInvalid, fmt::format("tensors {} and {} overlap",
                                                    in_quotes(before.name), in_quotes(after.name))};
  }
  return {};
}

Status sort_tensors(std::vector<ModelTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const ModelTensor& a, const ModelTensor& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      tensors.begin(), tensors.end(),
      [](const ModelTensor& a, const ModelTensor& b) { return a.name == b.name; });
  if (twice != tensors.end())
    return Error{ErrorKind::kInvalid,
                 fmt::format("tensor {} occurs twice", in_quotes(twice->name))};
  return {};
}

}  // namespace hearth
