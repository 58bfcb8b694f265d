// Gemma's notation of arguments, for grammars: {city:<|"|>Paris<|"|>,days:3}. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/text/tool_calls/fixed_text.h"

namespace hearth {

// The arguments that follow a schema, as an expression in Lark's format. Empty if the schema cannot
// be enforced in this notation: it knows objects with listed properties, arrays of one kind of
// item, enumerations, strings of any content, and what JSON writes without quotes.
std::string gemma_arguments_rule(const nlohmann::ordered_json& schema, const FixedText& fixed,
                                 std::string_view quote);

}  // namespace hearth
