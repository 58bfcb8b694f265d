// The addresses of the server: one table per API, each in a file of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tools/server/api/exchange.h"

namespace hearth {

class ServerState;

struct Route {
  std::string_view method;
  std::string_view path;  // one that ends with '/' (except "/" itself) takes all addresses below it
  void (*handle)(ServerState&, Exchange&);
  ErrorShape errors = ErrorShape::kOpenAi;
  bool open = false;  // needs no key: costs nothing and tells nothing

  bool answers(std::string_view address) const {
    return address == path || (path.ends_with('/') && path != "/" && address.starts_with(path));
  }
};

std::span<const Route> operations_routes();  // the page, /health, /metrics, /events
std::span<const Route> openai_routes();      // models, chats, completions; tokenizing
std::span<const Route> responses_routes();   // OpenAI's Responses API
std::span<const Route> embeddings_routes();
std::span<const Route> anthropic_routes();  // Anthropic's Messages API
std::span<const Route> ollama_routes();     // Ollama's API
std::span<const Route> llama_cpp_routes();  // /props and /apply-template
std::span<const Route> gateway_routes();    // /server_info and /model_info
std::span<const Route> control_routes();    // /control

// The route for an address; null if there is none, and one of another method if that is all.
const Route* find_route(std::string_view method, std::string_view address);
// The methods of an address, separated by commas.
std::string allowed_methods(std::string_view address);
// "; did you mean /v1/models?" or nothing, for a message about an address that does not exist.
std::string near_addresses(std::string_view address);

}  // namespace hearth
