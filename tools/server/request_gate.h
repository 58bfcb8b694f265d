// Decides from a request's headers alone whether it may come in, before its body is read. Pure;
// immutable after creation: any thread.
#pragma once

#include <optional>
#include <string_view>

#include "tools/server/api_error.h"
#include "tools/server/api_keys.h"
#include "tools/server/browser_guard.h"
#include "tools/server/http_parser.h"

namespace hearth {

class RequestGate {
 public:
  RequestGate(ApiKeys keys, BrowserRules rules)
      : keys_(std::move(keys)), rules_(std::move(rules)) {}

  // Refuses a request from a web page that must not use the server. Refuses none if the server has
  // keys, because such a page does not know them.
  std::optional<ApiError> check_browser(const HttpRequest& head) const;

  struct Route {
    std::string_view method;  // empty: there is nothing at the address
    bool open = false;        // needs no key
  };
  // Refuses a request without a key, for an unknown address, or with the wrong method.
  std::optional<ApiError> check_route(const Route& route, const HttpRequest& head) const;

  // Which of the keys the request has, from 1; 0: there are none, or it needs none.
  uint32_t client(const HttpRequest& head) const {
    return keys_.client(head.header("authorization"), head.header("x-api-key"));
  }

 private:
  const ApiKeys keys_;
  const BrowserRules rules_;
};

// GET for HEAD, which wants the same without the body.
std::string_view method_to_route(const HttpRequest& request);

}  // namespace hearth
