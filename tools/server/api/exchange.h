// One request and the reply to it, as the handlers of addresses see them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/server/api/error_shape.h"
#include "tools/server/http_reply.h"

namespace hearth {

inline const ApiError kShutDown{.status = 503,
                                .message = "the server has shut down",
                                .type = "server_error",
                                .code = "draining"};
inline const ApiError kOverloaded{
    .status = 503,
    .message = "too many large requests are being read; try again later",
    .type = "server_error",
    .code = "overloaded"};

struct Exchange {
  HttpRequest& request;
  HttpReply& reply;
  ErrorShape errors = ErrorShape::kOpenAi;
  uint32_t client = 0;  // which API key the request has, from 1; 0: none

  void send(const nlohmann::json& body, int status = 200);
  void refuse(const ApiError& error);
  // Charges what the body takes to parse to the budget that it was read on. False: it is used up,
  // and the reply says so.
  bool charge();
};

}  // namespace hearth
