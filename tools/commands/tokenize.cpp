// hearth tokenize: text to ids.
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/open_model_file.h"
#include "engine/text/tokenizer.h"
#include "tools/commands/command.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

class TokenizeCommand : public Command {
 public:
  TokenizeCommand() : Command("tokenize", "Text to token ids") {}

  void declare(CLI::App& app) override {
    app.add_option("-m,--model", model_,
                   "A .gguf file or a Hugging Face folder; without it, the embedded model");
    auto* text = app.add_option("text", text_, "The text; without it and --file, standard input");
    app.add_option("--file", file_, "Take the text from a file")->excludes(text);
    app.add_flag("--add-bos", add_bos_, "Begin with the token that begins a text");
    app.add_flag("--special", special_, "\"<|im_end|>\" and its like are tokens, not text");
    app.add_flag("--json", json_, "One JSON object on stdout");
    text_option_ = text;
  }

  Status run() override {
    HEARTH_ASSIGN(const auto model, open_model_file(model_));
    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(*model));
    if (vocabulary.kind == VocabularyKind::kNone)
      return Error{ErrorKind::kInvalid, fmt::format("{} has no vocabulary", model->name())};
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
    if (text_option_->count() > 0) return text_;
    return file_.empty() ? read_standard_input() : read_text_file(file_);
  }

  std::string model_, text_, file_;
  bool add_bos_ = false, special_ = false, json_ = false;
  CLI::Option* text_option_ = nullptr;
};

TokenizeCommand tokenize_command;

}  // namespace
}  // namespace hearth
