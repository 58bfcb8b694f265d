// The border to JSON: the caller's data as values of a template.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "engine/text/jinja/heap.h"

namespace hearth::jinja {

// Strings are borrowed: `json` outlives the rendering. With Origin::kInput, a string that equals
// one of `template_words` still counts as the template's.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, Origin origin,
                std::span<const std::string_view> template_words = {});

}  // namespace hearth::jinja
