// A chat request to a prompt: the model's template gets the messages, the tools and the request's
// variables. Pure.
#pragma once

#include <string>
#include <vector>

#include "engine/ids.h"
#include "engine/text/chat_template.h"
#include "runtime/result.h"
#include "tools/server/openai_request.h"
#include "tools/server/served_model.h"

namespace hearth {

struct ChatPrompt {
  std::vector<TokenId> ids;
  std::string text;
  bool begins_in_reasoning = false;  // the reply continues with reasoning that the prompt began
};

// `options` has the limits; the request fills in the rest. Fails as ChatTemplate::render() does.
Result<ChatPrompt> make_chat_prompt(const ServedModel& model, const ApiRequest& request,
                                    ChatOptions options);

}  // namespace hearth
