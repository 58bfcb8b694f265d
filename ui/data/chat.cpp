#include "ui/data/chat.h"

#include <charconv>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr size_t kTitleCharacters = 28;

std::string format_seconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.1f} s", seconds);
}

// The start of the character after the one at `at`.
size_t next_character(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}

}  // namespace

void use_defaults(ChatSampling& sampling, const SamplingOptions& defaults) {
  if (sampling.custom) return;
  const std::uint64_t seed = sampling.options.seed;
  sampling.options = defaults;
  sampling.options.seed = seed;
}

std::string title_from_question(std::string_view question) {
  std::string title;
  size_t characters = 0;
  for (size_t at = 0; at < question.size();) {
    const size_t end = next_character(question, at);
    const bool is_blank = static_cast<unsigned char>(question[at]) <= ' ';
    if (is_blank && (title.empty() || title.back() == ' ')) {
      at = end;
      continue;
    }
    // Cut at a word boundary unless the title would become too short.
    if (++characters > kTitleCharacters) {
      if (const size_t space = title.rfind(' '); space != std::string::npos && space > 8)
        title.resize(space);
      while (!title.empty() && title.back() == ' ') title.pop_back();
      return title + "...";
    }
    if (is_blank)
      title += ' ';
    else
      title += question.substr(at, end - at);
    at = end;
  }
  while (!title.empty() && title.back() == ' ') title.pop_back();
  return title;
}

std::string branch_title(std::string_view title) {
  constexpr std::string_view kMark = " (branch";
  const size_t mark = title.rfind(kMark);
  if (mark == std::string_view::npos || title.back() != ')')
    return fmt::format("{} (branch)", title);
  const std::string_view number = title.substr(mark + kMark.size());
  if (number == ")") return fmt::format("{} (branch 2)", title.substr(0, mark));
  int count = 0;
  const auto [end, failed] =
      std::from_chars(number.data() + 1, number.data() + number.size() - 1, count);
  if (failed != std::errc() || *end != ')') return fmt::format("{} (branch)", title);
  return fmt::format("{} (branch {})", title.substr(0, mark), count + 1);
}

std::string describe(const ChatReply& reply) {
  const std::uint32_t tokens = reply.generated_tokens();
  std::string line = fmt::format("{} token{}", tokens, tokens == 1 ? "" : "s");
  if (reply.kept_tokens > 0) line += fmt::format(" after {} kept", reply.kept_tokens);
  if (reply.tokens_per_s > 0) line += fmt::format(", {:.0f} tokens/s", reply.tokens_per_s);
  if (reply.first_token_seconds > 0)
    line += fmt::format(", TTFT {}", format_seconds(reply.first_token_seconds));
  if (reply.cached_tokens > 0)
    line += fmt::format(", {} of {} prompt tokens from the prefix cache", reply.cached_tokens,
                        reply.prompt_tokens);
  return line;
}

std::string describe_end(const ChatReply& reply) {
  switch (reply.finish) {
    case FinishReason::kNone:
      return "interrupted";
    case FinishReason::kStop:
      return {};
    case FinishReason::kLength:
      return "cut off: the token limit or the end of the context was reached";
    case FinishReason::kCancelled:
      return "stopped";
    case FinishReason::kTimeLimit:
      return "stopped by the time limit";
    case FinishReason::kError:
      return "failed";
  }
  return {};
}

}  // namespace hearth
