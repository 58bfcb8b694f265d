// Bodies of API requests: any bytes end in a request or in an error that a reply can carry.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"
#include "tools/server/json_body.h"
#include "tools/server/openai_request.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  return {
      R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[
          {"type":"text","text":"a"}]},{"role":"assistant","content":null,"tool_calls":[]}],
          "temperature":0.5,"top_k":-1,"n":2,"logprobs":true,"top_logprobs":3,"stream":true,
          "stream_options":{"include_usage":true},"response_format":{"type":"text"}})",
      R"({"messages":[{"role":"assistant","reasoning_content":"r","tool_calls":[{"id":"1","type":
          "function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1",
          "content":"2"}],"tools":[{"type":"function","function":{"name":"f","description":"d",
          "parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":
          "f"}},"parallel_tool_calls":false,"chat_template_kwargs":{"enable_thinking":true},
          "reasoning_effort":"low"})",
      R"({"prompt":["a","b"],"max_tokens":5,"stop":["x"],"logit_bias":{"5":-1.5},"seed":-3,
          "logprobs":2,"best_of":1,"echo":false})",
      R"({"prompt":[[1,2],[3]],"tools":[{}],"guided_json":{},"temprature":1})",
      R"({"content":"a","add_special":true,"tokens":[1,2,999]})",
  };
}

namespace {

template <class T>
void check(const std::variant<T, ApiError>& parsed) {
  const ApiError* error = std::get_if<ApiError>(&parsed);
  if (error == nullptr) return;
  // A client's own words must not make the reply as long as the request.
  if (error->message.empty() || error->message.size() > 1000 || error->param.size() > 500)
    std::abort();
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const ApiContext context{.vocabulary = 1000, .sampling = {}};
  check(parse_api_request(ApiKind::kChat, body, context));
  check(parse_api_request(ApiKind::kCompletion, body, context));
  check(parse_tokenize_request(body));
  check(parse_detokenize_request(body, 1000));
  return 0;
}
