#include "tools/server/api/exchange.h"

#include <string>

#include "tools/server/json_body.h"
#include "tools/server/openai_reply.h"

namespace hearth {

void Exchange::send(const nlohmann::json& body, int status) {
  reply.send(status, "application/json", to_text(body));
}

void Exchange::refuse(const ApiError& error) {
  if (error.status == 429 || error.code == kOverloaded.code)
    reply.header("Retry-After", std::to_string(error.retry_seconds));
  if (error.status == 401) reply.header("WWW-Authenticate", "Bearer");
  send(error_body(errors, error), error.status);
}

bool Exchange::charge() {
  if (request.memory.grow_to(request.body.size() + parse_bytes(request.body))) return true;
  request.body = {};
  request.memory.release();
  refuse(kOverloaded);
  return false;
}

}  // namespace hearth
