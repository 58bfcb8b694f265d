#include "tools/chat/chat_loop.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/log.h"
#include "runtime/memory.h"
#include "tools/chat/interrupt.h"

namespace hearth {
namespace {

// What an answer should have at least before old messages are left out.
constexpr uint32_t kRoomDivisor = 4, kMostRoom = 512;

void print(std::string_view text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}

// A number that can be set by its name.
struct Setting {
  std::string_view name;
  double (*get)(const ChatLoopOptions& options);
  void (*set)(ChatLoopOptions& options, double value);
};

std::string show(const Setting& setting, const ChatLoopOptions& options) {
  const double value = setting.get(options);
  return value == std::floor(value) ? fmt::format("{} = {:.0f}", setting.name, value)
                                    : fmt::format("{} = {:g}", setting.name, value);
}

constexpr Setting kSettings[] = {
    {"temp", [](const ChatLoopOptions& o) { return double{o.sampling.temperature}; },
     [](ChatLoopOptions& o, double v) { o.sampling.temperature = static_cast<float>(v); }},
    {"top_k", [](const ChatLoopOptions& o) { return double(o.sampling.top_k); },
     [](ChatLoopOptions& o, double v) { o.sampling.top_k = static_cast<uint32_t>(v); }},
    {"top_p", [](const ChatLoopOptions& o) { return double{o.sampling.top_p}; },
     [](ChatLoopOptions& o, double v) { o.sampling.top_p = static_cast<float>(v); }},
    {"min_p", [](const ChatLoopOptions& o) { return double{o.sampling.min_p}; },
     [](ChatLoopOptions& o, double v) { o.sampling.min_p = static_cast<float>(v); }},
    {"repeat_penalty",
     [](const ChatLoopOptions& o) { return double{o.sampling.repetition_penalty}; },
     [](ChatLoopOptions& o, double v) { o.sampling.repetition_penalty = static_cast<float>(v); }},
    {"tokens", [](const ChatLoopOptions& o) { return double(o.max_tokens); },
     [](ChatLoopOptions& o, double v) { o.max_tokens = static_cast<uint32_t>(v); }},
    {"seed", [](const ChatLoopOptions& o) { return static_cast<double>(o.sampling.seed); },
     [](ChatLoopOptions& o, double v) { o.sampling.seed = static_cast<uint64_t>(v); }},
};

}  // namespace

ChatLoop::ChatLoop(Session& session, const ChatTemplate& chat, ChatLoopOptions options)
    : session_(session),
      chat_(chat),
      options_(std::move(options)),
      reader_(default_history_file()) {
  conversation_.set_system(options_.system);
}

std::span<const ChatLoop::Command> ChatLoop::commands() {
  static constexpr Command all[] = {
      {"/reset", "", "forget the conversation", &ChatLoop::reset},
      {"/undo", "", "take back the last question and its answer", &ChatLoop::undo},
      {"/retry", "", "answer the last question again", &ChatLoop::retry},
      {"/edit", "TEXT", "change the last question and ask it again; without a text, edit it here",
       &ChatLoop::edit},
      {"/system", "TEXT", "set the system prompt; without a text, show it", &ChatLoop::system},
      {"/set", "NAME=VALUE", "change sampling, as in /set temp=0.7; alone, show all",
       &ChatLoop::set},
      {"/save", "FILE", "write the conversation down", &ChatLoop::save},
      {"/load", "FILE", "go on with one that was written down", &ChatLoop::load},
      {"/stats", "", "tokens, speed, memory", &ChatLoop::stats},
      {"/help", "", "this list", &ChatLoop::help},
      {"/quit", "", "leave, as Ctrl-D does", &ChatLoop::quit},
  };
  return all;
}

Status ChatLoop::run() {
  const InterruptGuard guard;
  if (reader_.interactive()) greet();
  while (!leaving_) {
    const std::string edited = std::exchange(text_to_edit_, {});
    const LineReader::Input input = reader_.read("> ", edited);
    if (input.end == LineReader::End::kClosed) break;
    if (input.end == LineReader::End::kInterrupted) {
      say("Ctrl-D or /quit leaves.");
      continue;
    }
    if (input.text.find_first_not_of(" \t\n") == std::string::npos) continue;
    if (input.text.front() == '/' && !input.quoted) {
      obey(input.text);
    } else {
      if (!edited.empty()) conversation_.undo();
      conversation_.add_user(input.text);
      answer_now_ = true;
    }
    if (!std::exchange(answer_now_, false)) continue;
    HEARTH_TRY(answer());
  }
  if (reader_.interactive()) print("\n");
  return {};
}

void ChatLoop::greet() const {
  say(fmt::format("{} on {}, context of {} tokens. /help lists commands.", session_.file().name(),
                  session_.device().caps().name, session_.runner().options().limits.context));
  if (chat_.source() == ChatTemplate::Source::kChatMl) log_line(kChatMlNotice);
}

void ChatLoop::say(std::string_view line) const { fmt::print(stderr, "{}\n", line); }

void ChatLoop::obey(std::string_view line) {
  const size_t space = line.find_first_of(" \n");
  const std::string_view name = line.substr(0, space);
  std::string_view argument =
      space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  while (!argument.empty() && argument.front() == ' ') argument.remove_prefix(1);
  for (const Command& command : commands())
    if (command.name == name) return (this->*command.action)(argument);
  say(fmt::format("There is no command {}; /help lists them.", name));
}

// A failed answer is told and its question taken back, so that questions and answers still take
// turns; only a lost device ends the conversation.
Status ChatLoop::answer() {
  const auto give_up = [this](std::string_view why) {
    say(why);
    conversation_.undo();
    return Status();
  };
  const uint32_t context = session_.runner().options().limits.context;
  const uint32_t room = std::min(context / kRoomDivisor, kMostRoom);
  const auto prompt = conversation_.prompt(chat_, *session_.tokenizer(), context, room);
  if (!prompt.ok()) return give_up(prompt.error().message);
  if (prompt->left_out > left_out_)
    say(fmt::format("(the context of {} tokens is full: the oldest {} messages are left out)",
                    context, prompt->left_out));
  left_out_ = prompt->left_out;

  const auto stream = session_.engine().submit({.prompt = prompt->ids,
                                                .sampling = options_.sampling,
                                                .max_tokens = options_.max_tokens,
                                                .stop = options_.stop});
  if (!stream.ok()) return give_up(stream.error().message);
  ++options_.sampling.seed;  // the next answer is another draw
  std::string text;
  bool stopped = false;
  while (!(*stream)->ended()) {
    if (take_interrupt() && !stopped) {
      session_.engine().cancel((*stream)->request());
      stopped = true;
    }
    const auto token = (*stream)->next(std::chrono::milliseconds(50));
    if (!token) continue;
    text += token->text;
    print(token->text);
  }
  const GenerationEnd& end = (*stream)->end();
  text += end.text;
  print(end.text);
  print("\n");
  if (end.reason == FinishReason::kError) {
    if (session_.engine().state() == EngineState::kFailed)
      return Error{ErrorKind::kDeviceLost, end.message};
    return give_up(end.message);
  }
  conversation_.add_assistant(text);
  if (end.reason == FinishReason::kLength && end.prompt_tokens + end.generated_tokens >= context)
    say(fmt::format("(the context of {} tokens is full: the answer is cut off)", context));
  show_status(end);
  return {};
}

void ChatLoop::show_status(const GenerationEnd& end) {
  ++answers_;
  tokens_ += end.generated_tokens;
  const double seconds = end.times.last_token - end.times.first_token;
  seconds_ += end.times.last_token;
  if (!reader_.interactive()) return;
  const uint32_t context = session_.runner().options().limits.context;
  const uint32_t used = end.prompt_tokens + end.generated_tokens;
  const std::string speed =
      seconds > 0 && end.generated_tokens > 1
          ? fmt::format("{:.1f} tokens/s, ", (end.generated_tokens - 1) / seconds)
          : std::string();
  const std::string line =
      fmt::format("[{}{} tokens, first after {:.2f} s, {} of {} tokens of context left{}]", speed,
                  end.generated_tokens, end.times.first_token, context - used, context,
                  end.reason == FinishReason::kCancelled ? ", stopped"
                  : end.reason == FinishReason::kLength  ? ", cut off"
                                                         : "");
  // Errors may go to a file while the conversation is on a terminal.
  say(isatty(STDERR_FILENO) != 0 ? "\033[2m" + line + "\033[0m" : line);
}

void ChatLoop::reset(std::string_view) {
  conversation_.clear();
  left_out_ = 0;
  say("The conversation is forgotten.");
}

void ChatLoop::undo(std::string_view) {
  const std::string question = conversation_.undo();
  say(question.empty() ? "There is nothing to take back."
                       : fmt::format("Taken back: {}", question));
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
    // It stays until there is another: Ctrl-C leaves all as it was.
    text_to_edit_ = question;
  } else {
    say("/edit needs the new question here, as in /edit Who are you?");
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
  if (assignment.empty()) {
    for (const Setting& setting : kSettings) say(show(setting, options_));
    return;
  }
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto setting = std::ranges::find(kSettings, name, &Setting::name);
  if (equals == std::string_view::npos || setting == std::end(kSettings))
    return say("What can be set is shown by /set alone, and set as in /set temp=0.7.");
  const std::string_view digits = assignment.substr(equals + 1);
  double value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size() || !(value >= 0) || value > 1e9)
    return say(fmt::format("{} is no number for {}.", digits, name));
  ChatLoopOptions changed = options_;
  setting->set(changed, value);
  // The same rules as for any request.
  if (const auto row = make_sampling_row(changed.sampling, {}); !row.ok())
    return say(row.error().message);
  options_ = changed;
  say(show(*setting, options_));
}

void ChatLoop::save(std::string_view path) {
  if (path.empty()) return say("/save needs a file name.");
  const Status status = conversation_.save(std::string(path));
  say(status.ok() ? fmt::format("Saved {} messages.", conversation_.messages().size())
                  : status.error().message);
}

void ChatLoop::load(std::string_view path) {
  if (path.empty()) return say("/load needs a file name.");
  const auto loaded = Conversation::load(std::string(path));
  if (!loaded.ok()) return say(loaded.error().message);
  conversation_ = *loaded;
  left_out_ = 0;
  say(fmt::format("Loaded {} messages.", conversation_.messages().size()));
}

void ChatLoop::stats(std::string_view) {
  const MemoryPlan& memory = session_.memory();
  say(fmt::format("{} answers, {} tokens, {:.1f} tokens/s over all", answers_, tokens_,
                  seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0.0));
  say(fmt::format("weights {}, activations {}, {} KV blocks of {}",
                  format_bytes(memory.weight_bytes), format_bytes(memory.activation_bytes),
                  memory.kv_blocks, format_bytes(memory.kv_bytes_per_block)));
  const Metrics& metrics = session_.engine().metrics();
  say(fmt::format("{} of {} prompt tokens came from the prefix cache",
                  metrics.prefix_hit_tokens.value(), metrics.prefix_query_tokens.value()));
}

void ChatLoop::help(std::string_view) {
  for (const Command& command : commands())
    say(fmt::format("{:<8} {:<11} {}", command.name, command.argument, command.about));
  say("A line that ends in \\ goes on; \"\"\" begins and ends a text of several lines.");
  say("Ctrl-C stops an answer.");
}

void ChatLoop::quit(std::string_view) { leaving_ = true; }

}  // namespace hearth
