#include "engine/generation.h"

namespace hearth {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kTimeLimit:
      return "time_limit";
    case FinishReason::kError:
      return "error";
  }
  return "none";
}

}  // namespace hearth
