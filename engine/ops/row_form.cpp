#include "engine/ops/kernel_choice.h"
#include "params/split_rows.h"

namespace hearth {

uint64_t row_form_bytes(RowForm form, uint32_t rows, uint32_t width) {
  const uint64_t elements = uint64_t{rows} * width;
  switch (form) {
    case RowForm::kFloats:
      return elements * 4;
    case RowForm::kHalves:
      return elements * 2;
    case RowForm::kSplit:
      return elements / kPieceWeights * params::kSplitPlanes * 16;
  }
  return 0;
}

bool can_write_form(const DeviceCaps& caps, RowForm form, uint32_t width) {
  // Eight lanes of a subgroup find a piece's scale together.
  constexpr uint32_t kPieceLanes = 8;
  switch (form) {
    case RowForm::kFloats:
      return true;
    case RowForm::kHalves:
      return width % kFloatInputUnit == 0;
    case RowForm::kSplit:
      return width % kPieceWeights == 0 && caps.subgroup_size >= kPieceLanes;
  }
  return false;
}

}  // namespace hearth
