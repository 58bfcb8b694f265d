// The form in which kernels pass rows of activations on: floats or f16.
#pragma once

#include <cstdint>

namespace hearth {

// What a product reads as x. Kernels that compute rows can write f16 instead of floats.
enum class RowForm : uint8_t { kFloats, kHalves };

uint64_t row_form_bytes(RowForm form, uint32_t rows, uint32_t width);

// Whether RMS norm and MLP activation can write rows of this width in this form.
bool can_write_form(RowForm form, uint32_t width);

}  // namespace hearth
