// The grammar of a chat that may call tools: what it forces depends on tool_choice, on the format
// of the model's calls and on response_format. Pure.
#pragma once

#include <optional>

#include "engine/text/tool_calls/reply_style.h"
#include "runtime/result.h"
#include "tools/server/api_error.h"
#include "tools/server/openai_request.h"

namespace hearth {

// Changes what the request's grammar is to be made of, if it may call tools. If it has to call, or
// answers by a schema, the grammar is that of its calls. Otherwise it begins once the model begins
// a call by itself, for formats where that is possible.
std::optional<ApiError> constrain_calls(const ReplyStyle& style, ApiRequest& request);
// Why the request's grammar cannot be used, as its client knows it: if it is that of calls, with
// the tool whose schema is at fault. May take as long as compiling the grammar.
ApiError call_grammar_error(const ApiRequest& request, const Error& error);

}  // namespace hearth
