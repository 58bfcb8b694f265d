// Runs one generation for a client of any API, and sends the reply.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tools/server/api/exchange.h"
#include "tools/server/reply_adapter.h"
#include "tools/server/request_fields.h"

namespace hearth {

class ServerState;

// What one of OpenAI's fields is called in another API.
struct FieldName {
  std::string_view openai, theirs;
};
// The same error about the other API's field.
ApiError renamed(ApiError error, std::span<const FieldName> names);

struct GenerationCall {
  ApiKind kind = ApiKind::kChat;
  std::string body;  // of a request to OpenAI's API
  // For other APIs: what writes the reply, and what fields are called there.
  std::unique_ptr<ReplyAdapter> adapter = nullptr;
  std::span<const FieldName> names = {};
};

// REQUIRES: the request's body has been charged to the budget; what it holds is released before the
// first token, because generating may take minutes.
void generate(ServerState& server, Exchange& exchange, GenerationCall call);

}  // namespace hearth
