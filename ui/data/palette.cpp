#include "ui/data/palette.h"

namespace hearth {

const char* phase_name(PhaseColor phase) {
  constexpr std::array<const char*, static_cast<size_t>(PhaseColor::kCount)> kNames = {
      "prefill", "decode",           "waiting", "preempted", "swapped",
      "padding", "prefix cache hit", "free",    "cached"};
  return kNames[static_cast<size_t>(phase)];
}

}  // namespace hearth
