// hearth tokenize: text to token ids.
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/open_model_file.h"
#include "engine/text/tokenizer.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

class TokenizeCommand : public Command {
 public:
  TokenizeCommand() : Command(CommandGroup::kFiles, "tokenize", "Turn text into token ids") {}

  void declare(Options& options) override {
    options.example("hearth tokenize -m model.gguf \"Once upon a time\"");
    Option& text = options.add("TEXT", &text_, "The text; without it, standard input");
    add_model_option(options, &model_);
    options.add("-f,--file FILE", &file_, "Read the text from a file")
        .check(check_file_name)
        .excludes(text);
    options.add("--add-bos", &add_bos_, "Put the beginning-of-text token first");
    options.add("--special", &special_, "Read <|im_end|> and the like as tokens, not as text");
    add_json_option(options, &json_);
    text_option_ = &text;
  }

  Status run() override {
    HEARTH_ASSIGN(const auto model, open_model_file(model_));
    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(*model));
    if (vocabulary.kind == VocabularyKind::kNone)
      return Error{ErrorKind::kInvalid,
                   fmt::format("{} has no vocabulary, so it has no tokens", model->name())};
    HEARTH_ASSIGN(const auto tokenizer, Tokenizer::create(std::move(vocabulary)));
    HEARTH_ASSIGN(const std::string text, read_text());
    const auto ids = tokenizer->encode(text, {.add_bos = add_bos_, .parse_special = special_});
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"ids", ids}}.dump());
    else
      fmt::print("{}\n", fmt::join(ids, " "));
    return {};
  }

 private:
  Result<std::string> read_text() const {
    if (text_option_->given()) return text_;
    return file_.empty() ? read_standard_input() : read_text_file(file_);
  }

  std::string model_, text_, file_;
  bool add_bos_ = false, special_ = false, json_ = false;
  const Option* text_option_ = nullptr;
};

TokenizeCommand tokenize_command;

}  // namespace
}  // namespace hearth
