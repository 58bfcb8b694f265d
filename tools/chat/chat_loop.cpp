#include "tools/chat/chat_loop.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/near_words.h"
#include "runtime/host/printable.h"
#include "runtime/memory.h"
#include "tools/chat/interrupt.h"
#include "tools/chat/word_wrapper.h"
#include "tools/count_of.h"
#include "tools/terminal_columns.h"
#include "tools/trimmed.h"

namespace hearth {
namespace {

// Old messages are left out of the prompt while an answer has less room than a quarter of the
// context or 512 tokens, whichever is less.
constexpr uint32_t kRoomDivisor = 4, kMostRoom = 512;
// How long a word may be held back before it is shown in part, and Ctrl-C may go unnoticed.
constexpr auto kLongestHold = std::chrono::milliseconds(50);

}  // namespace

ChatLoop::ChatLoop(ReplaceableModel& model, ChatLoopOptions options)
    : model_(model),
      settings_(std::move(options.settings)),
      stop_(std::move(options.stop)),
      ban_(std::move(options.ban)),
      decoding_(std::move(options.decoding)),
      grammar_(std::move(options.grammar)),
      when_full_(options.when_full),
      reader_(default_history_file()) {
  conversation_.set_system(std::move(options.system));
}

std::span<const ChatLoop::Command> ChatLoop::commands() {
  static constexpr Command all[] = {
      {"/help", "", "show this list", &ChatLoop::help},
      {"/?", "", "", &ChatLoop::help},
      {"/model", "NAME", "switch to another model; alone, show the current one",
       &ChatLoop::switch_model},
      {"/set", "NAME VALUE", "change a setting, as in /set temp 0.7; alone, list them",
       &ChatLoop::set},
      {"/system", "TEXT", "set the system prompt; alone, show it", &ChatLoop::system},
      {"/retry", "", "answer the last question again", &ChatLoop::retry},
      {"/edit", "TEXT", "change the last question; alone, edit it at the prompt", &ChatLoop::edit},
      {"/undo", "", "remove the last question and its answer", &ChatLoop::undo},
      {"/reset", "", "forget the conversation (or /clear)", &ChatLoop::reset},
      {"/clear", "", "", &ChatLoop::reset},
      {"/save", "FILE", "save the conversation", &ChatLoop::save},
      {"/load", "FILE", "continue a saved conversation", &ChatLoop::load},
      {"/stats", "", "show tokens, speed and memory use", &ChatLoop::stats},
      {"/bye", "", "leave (or /exit, /quit, Ctrl-D)", &ChatLoop::leave},
      {"/exit", "", "", &ChatLoop::leave},
      {"/quit", "", "", &ChatLoop::leave},
  };
  return all;
}

Status ChatLoop::run() {
  const InterruptGuard guard;
  if (reader_.interactive()) say(model_text() + " Type /help for a list of commands.");
  while (!leaving_) {
    const std::string edited = std::exchange(text_to_edit_, {});
    const LineReader::Input input = reader_.read("> ", edited);
    if (input.end == LineReader::End::kClosed) {
      if (reader_.interactive()) fmt::print("\n");  // Ctrl-D leaves the cursor after the prompt
      break;
    }
    if (input.end == LineReader::End::kInterrupted) {
      say("Press Ctrl-D or type /bye to leave.");
      continue;
    }
    if (trimmed(input.text).empty()) continue;
    if (input.text.front() == '/' && !input.quoted) {
      run_command(input.text);
      if (!model_.loaded())
        return Error{ErrorKind::kInternal, "the previous model could not be loaded again"};
    } else {
      if (!edited.empty()) conversation_.undo();
      conversation_.add_user(input.text);
      answer_now_ = true;
    }
    if (!std::exchange(answer_now_, false)) continue;
    HEARTH_TRY(answer());
  }
  return {};
}

std::string ChatLoop::model_text() const {
  return fmt::format("{} on {}, {} tokens of context.", model_.session().file().name(),
                     model_.session().device().caps().name, model_.context());
}

void ChatLoop::say(std::string_view line) const {
  fmt::print(stderr, "{}\n", wrap_words(printable_lines(line), terminal_columns(STDERR_FILENO)));
}

void ChatLoop::run_command(std::string_view line) {
  const size_t space = line.find_first_of(" \t\n");
  const std::string_view name = line.substr(0, space);
  const std::string_view argument =
      space == std::string_view::npos ? std::string_view() : trimmed(line.substr(space));
  for (const Command& command : commands())
    if (command.name == name) return (this->*command.action)(argument);
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name.substr(1));
  const std::vector<std::string> near = near_words(name.substr(1), names, 1);
  say(near.empty() ? fmt::format("There is no command {}. Type /help for a list.", name)
                   : fmt::format("There is no command {}. Did you mean /{}?", name, near.front()));
}

// A failed answer is reported and its question removed, so that questions and answers still
// alternate; only a lost device ends the conversation.
Status ChatLoop::answer() {
  const auto give_up = [this](std::string_view why) {
    say(why);
    conversation_.undo();
    return Status();
  };
  Session& session = model_.session();
  const uint32_t context = model_.context();
  const auto prompt = fitting_prompt();
  if (!prompt.ok()) return give_up(prompt.error().message);
  if (prompt->left_out > reported_left_out_)
    say(fmt::format("(The context of {} tokens is full: the oldest {} messages are left out.)",
                    context, prompt->left_out));
  reported_left_out_ = prompt->left_out;

  const SamplingOptions sampling = settings_.sampling.over(session.default_sampling());
  GenerationRequest request{.prompt = prompt->ids,
                            .sampling = sampling,
                            .max_tokens = settings_.max_tokens,
                            .stop = stop_,
                            .banned_strings = ban_,
                            .grammar = grammar_};
  decoding_.apply(*session.tokenizer(), request);
  auto stream = session.engine().submit(std::move(request));
  if (!stream.ok()) return give_up(stream.error().message);
  settings_.sampling.seed = sampling.seed + 1;  // the next answer is another draw
  const std::string text = show_answer(*stream);
  const GenerationEnd& end = stream->end();
  if (end.reason == FinishReason::kError) {
    if (session.engine().state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, end.message};
    return give_up(end.message);
  }
  conversation_.add_assistant(text);
  if (end.reason == FinishReason::kLength && end.prompt_tokens + end.generated_tokens >= context)
    say(fmt::format("(The context of {} tokens is full: the answer is cut off.)", context));
  show_status(end);
  return {};
}

Result<FittedPrompt> ChatLoop::fitting_prompt() {
  Session& session = model_.session();
  const uint32_t context = model_.context();
  const auto build = [&] {
    return conversation_.prompt(model_.chat_template(), *session.tokenizer(), context,
                                std::min(context / kRoomDivisor, kMostRoom));
  };
  HEARTH_ASSIGN(FittedPrompt prompt, build());
  if (prompt.left_out == 0 || when_full_ == WhenFull::kDrop) return prompt;
  if (when_full_ == WhenFull::kStop)
    return invalid(
        fmt::format("The context of {} tokens is full. Type /reset to begin anew, or "
                    "/undo to remove the last answer.",
                    context));
  // Messages that hold only what must stay do not become shorter; then the oldest are left out.
  for (int times = 0; times < 2 && prompt.left_out > 0; ++times) {
    HEARTH_ASSIGN(const ShortenedConversation shorter,
                  shorten_conversation(conversation_, session.engine(), *session.tokenizer()));
    if (shorter.tokens_after >= shorter.tokens_before) break;
    say(
        fmt::format("(The context of {} tokens is full: earlier messages are shortened from {} to "
                    "{} tokens.)",
                    context, shorter.tokens_before, shorter.tokens_after));
    HEARTH_ASSIGN(prompt, build());
  }
  return prompt;
}

std::string ChatLoop::show_answer(TokenStream& stream) {
  std::string text;
  WordWrapper wrapper([] { return terminal_columns(STDOUT_FILENO); },
                      [](std::string_view piece) { fmt::print("{}", piece); });
  const auto show = [&](std::string_view piece) {
    text += piece;
    wrapper.add(piece);
    std::fflush(stdout);
  };
  bool cancelled = false;
  while (!stream.ended()) {
    if (take_interrupt() && !std::exchange(cancelled, true))
      model_.session().engine().cancel(stream.request());
    if (const auto token = stream.next(kLongestHold)) {
      show(token->text);
    } else {
      wrapper.show_held();
      std::fflush(stdout);
    }
  }
  show(stream.end().text);
  wrapper.end();
  std::fflush(stdout);
  return text;
}

void ChatLoop::show_status(const GenerationEnd& end) {
  ++answers_;
  tokens_ += end.generated_tokens;
  const double seconds = end.times.last_token - end.times.first_token;
  seconds_ += end.times.last_token;
  if (!reader_.interactive()) return;
  const uint32_t context = model_.context();
  const uint32_t used = end.prompt_tokens + end.generated_tokens;
  const std::string speed =
      seconds > 0 && end.generated_tokens > 1
          ? fmt::format("{:.1f} tokens/s, ", (end.generated_tokens - 1) / seconds)
          : std::string();
  const std::string line = fmt::format(
      "[{}{}, first after {:.2f} s, {} of {} tokens of context left{}]", speed,
      count_of(end.generated_tokens, "token"), end.times.first_token, context - used, context,
      end.reason == FinishReason::kCancelled ? ", stopped"
      : end.reason == FinishReason::kLength  ? ", cut off"
                                             : "");
  // Errors may go to a file while the conversation is on a terminal.
  const uint32_t columns = terminal_columns(STDERR_FILENO);
  if (columns > 0)
    fmt::print(stderr, "\033[2m{}\033[0m\n", wrap_words(line, columns));
  else
    say(line);
}

void ChatLoop::reset(std::string_view) {
  conversation_.clear();
  reported_left_out_ = 0;
  say("The conversation is forgotten.");
}

void ChatLoop::undo(std::string_view) {
  const std::string question = conversation_.undo();
  say(question.empty() ? "There is nothing to undo." : fmt::format("Removed: {}", question));
}

void ChatLoop::retry(std::string_view) {
  answer_now_ = conversation_.drop_answer();
  if (!answer_now_) say("There is no question yet.");
}

void ChatLoop::edit(std::string_view text) {
  const std::string question = conversation_.last_question();
  if (question.empty()) return say("There is no question yet.");
  if (!text.empty()) {
    conversation_.undo();
    conversation_.add_user(std::string(text));
    answer_now_ = true;
  } else if (reader_.interactive()) {
    // The old question stays until the new one is entered: Ctrl-C changes nothing.
    text_to_edit_ = question;
  } else {
    say("/edit needs the new question, as in /edit Who are you?");
  }
}

void ChatLoop::system(std::string_view text) {
  if (text.empty())
    return say(conversation_.system().empty() ? "There is no system prompt."
                                              : conversation_.system());
  conversation_.set_system(std::string(text));
  say("The system prompt is set.");
}

void ChatLoop::set(std::string_view assignment) {
  const SamplingOptions& defaults = model_.session().default_sampling();
  if (assignment.empty()) {
    for (const std::string& line : list_settings(settings_, defaults)) say(line);
    return;
  }
  const auto line = change_setting(settings_, defaults, assignment);
  say(line.ok() ? *line : line.error().message);
}

void ChatLoop::switch_model(std::string_view name) {
  if (name.empty()) return say(model_text());
  const Status status = model_.replace(std::string(name));
  take_interrupt();  // pressed while it was loading, which cannot be stopped
  if (status.ok()) {
    reported_left_out_ = 0;
    return say(model_text());
  }
  say(status.error().message);
  if (model_.loaded()) say(fmt::format("Still using {}.", model_.session().file().name()));
}

void ChatLoop::save(std::string_view path) {
  if (path.empty()) return say("/save needs a file name.");
  const Status status = conversation_.save(std::string(path));
  say(status.ok() ? fmt::format("Saved {}.", count_of(conversation_.messages().size(), "message"))
                  : status.error().message);
}

void ChatLoop::load(std::string_view path) {
  if (path.empty()) return say("/load needs a file name.");
  const auto loaded = Conversation::load(std::string(path));
  if (!loaded.ok()) return say(loaded.error().message);
  conversation_ = *loaded;
  reported_left_out_ = 0;
  say(fmt::format("Loaded {}.", count_of(conversation_.messages().size(), "message")));
}

void ChatLoop::stats(std::string_view) {
  const MemoryPlan& memory = model_.session().memory();
  say(fmt::format("{}, {}, {:.1f} tokens/s overall.", count_of(answers_, "answer"),
                  count_of(tokens_, "token"),
                  seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0.0));
  say(fmt::format("Weights {}, activations {}, {} KV blocks of {} each.",
                  format_bytes(memory.weight_bytes), format_bytes(memory.activation_bytes),
                  memory.kv_blocks, format_bytes(memory.kv_bytes_per_block)));
  const Metrics& metrics = model_.session().engine().metrics();
  say(fmt::format("{} of {} prompt tokens came from the prefix cache.",
                  metrics.prefix_hit_tokens.value(), metrics.prefix_query_tokens.value()));
}

void ChatLoop::help(std::string_view) {
  for (const Command& command : commands())
    if (!command.about.empty())
      fmt::print(stderr, "{:<8}{:<11} {}\n", command.name, command.argument, command.about);
  say("");
  say("End a line with \\ to continue on the next; put longer texts between \"\"\" lines.");
  say("Press Ctrl-C to stop an answer.");
}

void ChatLoop::leave(std::string_view) { leaving_ = true; }

}  // namespace hearth
