#include "tools/commands/ask_model.h"

#include <span>
#include <utility>

#include "engine/text/encode_chat.h"

namespace hearth {

Result<ModelAnswer> ask_model(Session& session, GenerationRequest request, std::string message) {
  HEARTH_ASSIGN(const ChatTemplate* chat, session.chat_template());
  const ChatMessage asked{"user", std::move(message)};
  HEARTH_ASSIGN(request.prompt, encode_chat(*chat, *session.tokenizer(), std::span(&asked, 1)));
  request.sampling.temperature = 0;
  HEARTH_ASSIGN(TokenStream stream, session.engine().submit(std::move(request)));
  ModelAnswer answer;
  while (const auto token = stream.next()) answer.text += token->text;
  answer.end = stream.end();
  answer.text += answer.end.text;
  if (answer.end.reason == FinishReason::kError)
    return Error{ErrorKind::kInternal, answer.end.message};
  return answer;
}

}  // namespace hearth
