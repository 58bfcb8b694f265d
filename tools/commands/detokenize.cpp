// hearth detokenize: token ids to text.
#include <charconv>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/open_model_file.h"
#include "engine/text/tokenizer.h"
#include "engine/weights/in_quotes.h"
#include "tools/commands/command.h"
#include "tools/commands/common_options.h"
#include "tools/read_text.h"

namespace hearth {
namespace {

// Reads "1 2,3".
Status append_ids(std::string_view text, std::vector<std::uint32_t>& ids) {
  constexpr std::string_view kBetween = ", \t\r\n";
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return {};
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      return Error{ErrorKind::kInvalid, fmt::format("{} is not a token id", in_quotes(word))};
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

class DetokenizeCommand : public Command {
 public:
  DetokenizeCommand() : Command(CommandGroup::kFiles, "detokenize", "Turn token ids into text") {}

  void declare(Options& options) override {
    options.example("hearth detokenize 404 1023 7");
    options.example("hearth tokenize \"a fox\" | hearth detokenize");
    Option& ids = options
                      .add("IDS...", &words_,
                           "Token ids, separated by spaces or commas; without any, standard input")
                      .check(check_ids);
    add_model_option(options, &model_);
    options.add("-f,--file FILE", &file_, "Read the ids from a file")
        .check(check_file_name)
        .excludes(ids);
    options.add("--special", &special_, "Show special tokens such as <|im_end|>");
    add_json_option(options, &json_);
  }

  Status run() override {
    std::vector<std::uint32_t> ids;
    for (const std::string& word : words_) HEARTH_TRY(append_ids(word, ids));
    if (words_.empty()) {
      HEARTH_ASSIGN(const std::string text,
                    file_.empty() ? read_standard_input() : read_text_file(file_));
      HEARTH_TRY(append_ids(text, ids));
    }
    HEARTH_ASSIGN(const auto model, open_model_file(model_));
    HEARTH_ASSIGN(Vocabulary vocabulary, read_vocabulary(*model));
    if (vocabulary.kind == VocabularyKind::kNone)
      return Error{ErrorKind::kInvalid,
                   fmt::format("{} has no vocabulary, so it has no tokens", model->name())};
    HEARTH_ASSIGN(const auto tokenizer, Tokenizer::create(std::move(vocabulary)));
    for (const std::uint32_t id : ids)
      if (id >= tokenizer->size())
        return Error{ErrorKind::kInvalid,
                     fmt::format("there is no token {}: the vocabulary has {} tokens", id,
                                 tokenizer->size())};
    const std::string text = tokenizer->decode(ids, special_);
    // JSON is UTF-8, so other bytes become U+FFFD there; plain text keeps them.
    if (json_)
      fmt::print("{}\n", nlohmann::json{{"text", text}}.dump(
                             -1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      fmt::print("{}\n", text);
    return {};
  }

 private:
  static std::string check_ids(const std::string& word) {
    std::vector<std::uint32_t> ids;
    const Status status = append_ids(word, ids);
    return status.ok() ? std::string() : status.error().message;
  }

  std::string model_, file_;
  std::vector<std::string> words_;
  bool special_ = false, json_ = false;
};

DetokenizeCommand detokenize_command;

}  // namespace
}  // namespace hearth
