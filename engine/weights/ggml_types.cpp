#include "engine/weights/ggml_types.h"

#include <array>
#include <string_view>

#include "engine/weights/formats.h"

namespace hearth {
namespace {

struct TypeName {
  std::uint32_t ggml_type;
  std::string_view name;
};
constexpr std::array kUnread = {
    TypeName{9, "Q8_1"},     TypeName{15, "Q8_K"},  TypeName{16, "IQ2_XXS"}, TypeName{17, "IQ2_XS"},
    TypeName{18, "IQ3_XXS"}, TypeName{19, "IQ1_S"}, TypeName{21, "IQ3_S"},   TypeName{22, "IQ2_S"},
    TypeName{24, "I8"},      TypeName{25, "I16"},   TypeName{26, "I32"},     TypeName{27, "I64"},
    TypeName{28, "F64"},     TypeName{29, "IQ1_M"}, TypeName{34, "TQ1_0"},   TypeName{35, "TQ2_0"},
    TypeName{40, "NVFP4"},
};

}  // namespace

std::string ggml_type_name(std::uint32_t ggml_type) {
  if (const auto format = format_from_ggml_type(ggml_type))
    return std::string(format_info(*format).name);
  for (const TypeName& type : kUnread)
    if (type.ggml_type == ggml_type) return std::string(type.name);
  return "number " + std::to_string(ggml_type);
}

}  // namespace hearth
