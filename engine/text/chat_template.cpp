#include "engine/text/chat_template.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/text/template_guard.h"
#include "engine/text/template_limits.h"

namespace hearth {
namespace {

// What most models without a template of their own understand.
constexpr std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// As transformers runs them.
constexpr minja::Options kOptions = {
    .trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false};

// minja's messages are "what at row 3, column 7:" and then lines of the template, once for every
// call around it. What happened and the innermost line are enough.
std::string in_one_line(std::string_view message) {
  constexpr std::string_view kPlace = " at row ";
  const std::size_t place = message.find(kPlace);
  std::string what(message.substr(0, place));
  std::ranges::replace_if(
      what, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  if (place == std::string_view::npos) return what;
  const std::string_view rest = message.substr(place + kPlace.size());
  return fmt::format("line {}: {}", rest.substr(0, rest.find_first_not_of("0123456789")), what);
}

Error failed(std::string_view message) {
  return {ErrorKind::kInvalid, fmt::format("chat template: {}", message)};
}

std::string text_of(const Vocabulary& vocabulary, std::optional<std::uint32_t> id) {
  return id && *id < vocabulary.tokens.size() ? vocabulary.tokens[*id].text : std::string();
}

// Macros hold the context they are in, so that neither would ever be freed.
void let_go(minja::Context& context) {
  for (const minja::Value& key : context.keys()) context.set(key, minja::Value());
}

}  // namespace

struct ChatTemplate::Program {
  std::shared_ptr<minja::TemplateNode> root;
  std::size_t bytes = 0;
};

ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::create(const Vocabulary& vocabulary) {
  std::unique_ptr<ChatTemplate> made(new ChatTemplate);
  made->bos_ = text_of(vocabulary, vocabulary.bos);
  made->eos_ = text_of(vocabulary, vocabulary.eos);
  made->source_ = vocabulary.chat_template.empty() ? Source::kChatMl : Source::kModel;
  const std::string_view source =
      vocabulary.chat_template.empty() ? kChatMl : std::string_view(vocabulary.chat_template);
  const Result<std::string> guarded = guard_template(source);
  if (!guarded.ok()) return failed(guarded.error().message);
  try {
    made->program_ = std::make_unique<Program>(
        Program{minja::Parser::parse(*guarded, kOptions), guarded->size()});
  } catch (const std::exception& error) {
    return failed(in_one_line(error.what()));
  }
  return made;
}

Result<std::string> ChatTemplate::apply(std::span<const ChatMessage> messages,
                                        const ChatOptions& options) const {
  try {
    TemplateLimits limits{.template_bytes = program_->bytes};
    minja::Value list = minja::Value::array();
    for (const ChatMessage& message : messages) {
      limits.input_bytes += message.role.size() + message.content.size();
      minja::Value entry = minja::Value::object();
      entry.set("role", message.role);
      entry.set("content", message.content);
      list.push_back(entry);
    }
    const auto functions = limited_context(limits, options.now.value_or(std::time(nullptr)));
    const auto context = minja::Context::make(minja::Value::object(), functions);
    context->set("messages", list);
    context->set("add_generation_prompt", options.add_generation_prompt);
    context->set("bos_token", bos_);
    context->set("eos_token", eos_);
    Result<std::string> text = [&]() -> Result<std::string> {
      try {
        return program_->root->render(context);
      } catch (const std::exception& error) {
        return failed(in_one_line(error.what()));
      }
    }();
    let_go(*context);
    return text;
  } catch (const std::exception& error) {
    return failed(in_one_line(error.what()));
  }
}

}  // namespace hearth
