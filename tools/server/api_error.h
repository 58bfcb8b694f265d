// What is wrong with a request, as the reply says it in OpenAI's shape.
#pragma once

#include <string>

namespace hearth {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};  // the field at fault, if there is one
  std::string type = "invalid_request_error";
  std::string code = {};
  int retry_seconds = 1;  // if it is worth trying again
};

}  // namespace hearth
