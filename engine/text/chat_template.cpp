#include "engine/text/chat_template.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/text/jinja/template.h"

namespace hearth {
namespace {

using OrderedJson = nlohmann::ordered_json;

// What most models without a template of their own understand.
constexpr std::string_view kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// Some templates build a control token from a message's role, such as '<|' + role + '|>'. These
// roles are no secret and no attack, so they count as the template's own text.
constexpr std::array<std::string_view, 9> kRoles = {"system",  "user",      "assistant",
                                                    "tool",    "developer", "function",
                                                    "ipython", "model",     "observation"};

Error failed(const Error& error) {
  return {error.kind, fmt::format("chat template: {}", error.message)};
}

std::string text_of(const Vocabulary& vocabulary, std::optional<std::uint32_t> id) {
  return id && *id < vocabulary.tokens.size() ? vocabulary.tokens[*id].text : std::string();
}

OrderedJson message_json(const ChatMessage& message, bool parsed_arguments) {
  OrderedJson made = {{"role", message.role}, {"content", message.content}};
  if (!message.reasoning.empty()) {
    made["reasoning_content"] = message.reasoning;
    // The name in gpt-oss's template, which refuses it together with content.
    if (message.content.empty()) made["thinking"] = message.reasoning;
  }
  for (const ChatToolCall& call : message.tool_calls) {
    OrderedJson arguments =
        parsed_arguments ? OrderedJson::parse(call.arguments, nullptr, false) : OrderedJson();
    if (!arguments.is_object()) arguments = call.arguments;
    made["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
  if (!message.tool_call_id.empty()) made["tool_call_id"] = message.tool_call_id;
  if (!message.name.empty()) made["name"] = message.name;
  return made;
}

}  // namespace

struct ChatTemplate::Parts {
  jinja::Template program;
  OrderedJson bos, eos;
};

ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::create(const Vocabulary& vocabulary,
                                                           bool special_in_messages) {
  const bool has_own = !vocabulary.chat_template.empty();
  auto parsed =
      jinja::Template::parse(has_own ? std::string_view(vocabulary.chat_template) : kChatMl);
  if (!parsed.ok()) return failed(parsed.error());
  std::unique_ptr<ChatTemplate> made(new ChatTemplate);
  made->special_in_messages_ = special_in_messages;
  made->source_ = has_own ? Source::kModel : Source::kChatMl;
  made->parts_ = std::make_unique<const Parts>(Parts{std::move(parsed).value(),
                                                     text_of(vocabulary, vocabulary.bos),
                                                     text_of(vocabulary, vocabulary.eos)});
  return made;
}

Result<jinja::Rendering> ChatTemplate::render(const OrderedJson& messages,
                                              const ChatOptions& options) const {
  const OrderedJson none, prompts = options.add_generation_prompt;
  const auto deadline = std::chrono::steady_clock::now() + options.time_limit;
  const auto attempt = [&](bool absent_is_none) {
    std::vector<jinja::Variable> variables;
    if (absent_is_none) variables = {{"tools", &none}, {"documents", &none}};
    variables.push_back({"messages", &messages});
    variables.push_back({"add_generation_prompt", &prompts, jinja::Origin::kTemplate});
    variables.push_back({"bos_token", &parts_->bos, jinja::Origin::kTemplate});
    variables.push_back({"eos_token", &parts_->eos, jinja::Origin::kTemplate});
    if (options.tools != nullptr) variables.push_back({"tools", options.tools});
    if (options.variables != nullptr && options.variables->is_object())
      for (const auto& [name, value] : options.variables->get_ref<const OrderedJson::object_t&>())
        variables.push_back({name, &value});
    jinja::RenderOptions render_options{.cancelled = options.cancelled,
                                        .now = options.now.value_or(std::time(nullptr)),
                                        .template_words = kRoles};
    // Rounded up: a caller that looks at its own clock then finds the time over, too.
    render_options.limits.time =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return parts_->program.render(variables, render_options);
  };
  // transformers passes none for what is absent. Some older templates only work if it is undefined.
  Result<jinja::Rendering> rendering = attempt(true);
  if (!rendering.ok()) rendering = attempt(false);
  if (!rendering.ok()) return failed(rendering.error());
  return rendering;
}

Result<jinja::Rendering> ChatTemplate::render(std::span<const ChatMessage> messages,
                                              const ChatOptions& options) const {
  const auto list = [&](bool parsed_arguments) {
    OrderedJson made = OrderedJson::array();
    for (const ChatMessage& message : messages)
      made.push_back(message_json(message, parsed_arguments));
    return made;
  };
  // Templates expect arguments as objects, as transformers passes them; a few want their text.
  Result<jinja::Rendering> rendering = render(list(true), options);
  if (rendering.ok() || std::ranges::all_of(messages, [](const ChatMessage& message) {
        return message.tool_calls.empty();
      }))
    return rendering;
  Result<jinja::Rendering> with_text = render(list(false), options);
  return with_text.ok() ? std::move(with_text) : std::move(rendering);
}

Result<std::string> ChatTemplate::apply(std::span<const ChatMessage> messages,
                                        const ChatOptions& options) const {
  HEARTH_ASSIGN(jinja::Rendering rendering, render(messages, options));
  return std::move(rendering.text);
}

}  // namespace hearth
