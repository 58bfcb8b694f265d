// hearth template: what a chat template makes of a conversation.
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include <fmt/format.h>

#include "engine/open_model_file.h"
#include "engine/text/chat_template.h"
#include "runtime/log.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// Seconds since 1970, or a local time such as 2026-11-17T12:00:00, whose seconds and time of day
// may be left out.
Result<std::time_t> parse_time(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == text.npos && text.size() <= 12)
    return static_cast<std::time_t>(std::strtoll(text.c_str(), nullptr, 10));
  for (const char* const form :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    const char* const end = strptime(text.c_str(), form, &parts);
    if (end == nullptr || *end != '\0') continue;
    parts.tm_isdst = -1;
    return std::mktime(&parts);
  }
  return Error{
      ErrorKind::kInvalid,
      fmt::format("--now {}: expected a time such as 2026-11-17T12:00:00, or seconds since "
                  "1970",
                  text)};
}

class TemplateCommand : public Command {
 public:
  TemplateCommand()
      : Command(CommandGroup::kFiles, "template",
                "Show what a chat template makes of a conversation") {}

  void declare(Options& options) override {
    options.example("hearth template -m model.gguf --messages conversation.json");
    options
        .add("--messages FILE", &messages_,
             "The conversation as JSON: a list of messages, or an object with messages, tools and "
             "kwargs; without it, standard input")
        .check(check_file_name);
    model_option_ = &add_model_option(options, &model_);
    options.add("-f,--file FILE", &file_, "A Jinja template to use instead of the model's own")
        .check(check_file_name);
    bos_option_ = &options.add("--bos TEXT", &bos_, "The value of bos_token");
    eos_option_ = &options.add("--eos TEXT", &eos_, "The value of eos_token");
    options.add("--now TIME", &now_,
                "The time to tell the template: 2026-11-17T12:00:00 or seconds since 1970; without "
                "it, the clock's");
    options.add("--no-generation-prompt", &no_prompt_,
                "Leave out the opening of the assistant's turn");
    options.add("--json", &json_,
                "Print one JSON object: the text, and which parts of it the template and the "
                "conversation wrote");
  }

  Status run() override {
    ChatOptions options{.add_generation_prompt = !no_prompt_};
    if (!now_.empty()) {
      HEARTH_ASSIGN(options.now, parse_time(now_));
    }
    HEARTH_ASSIGN(const Vocabulary vocabulary, read_template());
    HEARTH_ASSIGN(const auto chat, ChatTemplate::create(vocabulary));
    if (chat->source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
    HEARTH_ASSIGN(const Json conversation, read_conversation());
    if (conversation.contains("tools")) options.tools = &conversation["tools"];
    if (conversation.contains("kwargs")) options.variables = &conversation["kwargs"];
    HEARTH_ASSIGN(const jinja::Rendering rendering,
                  chat->render(conversation["messages"], options));
    if (json_) return print_json(rendering);
    fmt::print("{}", rendering.text);
    return {};
  }

 private:
  // The template with its two tokens: the model's, unless options replace them. A template file
  // needs no model, but takes the tokens of one that is named.
  Result<Vocabulary> read_template() const {
    Vocabulary vocabulary;
    if (file_.empty() || model_option_->given()) {
      HEARTH_ASSIGN(const auto model, open_model_file(model_));
      HEARTH_ASSIGN(vocabulary, read_vocabulary(*model));
    }
    if (!file_.empty()) {
      HEARTH_ASSIGN(vocabulary.chat_template, read_text_file(file_));
      if (vocabulary.chat_template.empty())
        return Error{ErrorKind::kInvalid, fmt::format("{}: the template is empty", file_)};
    }
    const auto replace = [&](const Option* option, const std::string& text,
                             std::optional<std::uint32_t>& id) {
      if (!option->given()) return;
      id = static_cast<std::uint32_t>(vocabulary.tokens.size());
      vocabulary.tokens.push_back({.text = text});
    };
    replace(bos_option_, bos_, vocabulary.bos);
    replace(eos_option_, eos_, vocabulary.eos);
    return vocabulary;
  }

  Result<Json> read_conversation() const {
    HEARTH_ASSIGN(const std::string text,
                  messages_.empty() ? read_standard_input() : read_text_file(messages_));
    Json read = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (read.is_array()) read = Json{{"messages", std::move(read)}};
    if (!read.is_object() || !read.contains("messages") || !read["messages"].is_array())
      return Error{
          ErrorKind::kInvalid,
          fmt::format("{}: expected JSON, a list of messages or an object with \"messages\"",
                      messages_.empty() ? "standard input" : messages_)};
    if (read.contains("kwargs") && !read["kwargs"].is_object())
      return Error{ErrorKind::kInvalid, fmt::format("{}: \"kwargs\" is not an object", messages_)};
    return read;
  }

  static Status print_json(const jinja::Rendering& rendering) {
    Json runs = Json::array();
    std::size_t begin = 0;
    for (const jinja::Run& run : rendering.runs) {
      const bool is_input = run.origin == jinja::Origin::kInput;
      runs.push_back({{"text", rendering.text.substr(begin, run.end - begin)},
                      {"from", is_input ? "conversation" : "template"}});
      begin = run.end;
    }
    const Json all = {{"text", rendering.text}, {"runs", runs}};
    fmt::print("{}\n", all.dump(-1, ' ', false, Json::error_handler_t::replace));
    return {};
  }

  std::string model_, file_, messages_, bos_, eos_, now_;
  bool no_prompt_ = false, json_ = false;
  const Option* model_option_ = nullptr;
  const Option* bos_option_ = nullptr;
  const Option* eos_option_ = nullptr;
};

TemplateCommand template_command;

}  // namespace
}  // namespace hearth
