#include "engine/ops/row_form.h"

#include "engine/ops/matmul.h"

namespace hearth {

uint64_t row_form_bytes(RowForm form, uint32_t rows, uint32_t width) {
  const uint64_t elements = uint64_t{rows} * width;
  switch (form) {
    case RowForm::kFloats:
      return elements * 4;
    case RowForm::kHalves:
      return elements * 2;
  }
  return 0;
}

bool can_write_form(RowForm form, uint32_t width) {
  return form == RowForm::kFloats || width % kFloatInputUnit == 0;
}

}  // namespace hearth
