#include "models/default_model.h"

// In default_model.S, which the build writes.
extern "C" {
extern const std::byte hearth_default_model_begin[];
extern const std::byte hearth_default_model_end[];
extern const std::byte hearth_default_draft_model_begin[];
extern const std::byte hearth_default_draft_model_end[];
}

namespace hearth {

std::span<const std::byte> default_model() {
  return {hearth_default_model_begin, hearth_default_model_end};
}

std::string_view default_model_name() { return HEARTH_DEFAULT_MODEL_NAME; }

std::span<const std::byte> default_draft_model() {
  return {hearth_default_draft_model_begin, hearth_default_draft_model_end};
}

std::string_view default_draft_model_name() { return HEARTH_DEFAULT_DRAFT_MODEL_NAME; }

}  // namespace hearth
