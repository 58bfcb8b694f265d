#include "ui/data/chat_export.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "runtime/host/read_file.h"
#include "ui/data/chat_parts.h"
#include "ui/data/rich_lines.h"

namespace hearth {
namespace {

constexpr uint64_t kMostAttachedBytes = 256 << 10;

char lower_letter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool mentions_text(std::string_view text, std::string_view wanted) {
  return std::search(text.begin(), text.end(), wanted.begin(), wanted.end(), [](char a, char b) {
           return lower_letter(a) == lower_letter(b);
         }) != text.end();
}

std::string quoted_lines(std::string_view text) {
  std::string result = "> ";
  for (const char letter : text) {
    result += letter;
    if (letter == '\n') result += "> ";
  }
  return result;
}

bool is_text(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t from = at;
    const char32_t character = take_character(bytes, at);
    const bool broken = character == 0xfffd && bytes.substr(from, 3) != "\xef\xbf\xbd";
    if (broken || character == 0) return false;
  }
  return true;
}

}  // namespace

std::string export_markdown(const Chat& chat) {
  std::string text = fmt::format("# {}\n", chat.display_title());
  if (!chat.system.empty()) text += fmt::format("\n*System prompt:* {}\n", chat.system);
  for (const ChatExchange& exchange : chat.exchanges) {
    text += fmt::format("\n## You\n\n{}\n\n## Model\n", exchange.question);
    for (const ChatPart& part : parts_of(exchange.reply)) {
      const std::string_view words =
          std::string_view(exchange.reply.text).substr(part.begin, part.end - part.begin);
      switch (part.kind) {
        case ChatPart::Kind::kText:
          text += fmt::format("\n{}\n", words);
          break;
        case ChatPart::Kind::kReasoning:
          text += fmt::format("\n{}\n", quoted_lines(words));
          break;
        case ChatPart::Kind::kCall:
          text += fmt::format("\nCalls `{}`:\n\n```json\n{}\n```\n", part.name, part.arguments);
          break;
      }
    }
  }
  return text;
}

std::string export_json(const Chat& chat) {
  using Json = nlohmann::ordered_json;
  Json messages = Json::array();
  if (!chat.system.empty()) messages.push_back({{"role", "system"}, {"content", chat.system}});
  for (const ChatExchange& exchange : chat.exchanges) {
    messages.push_back({{"role", "user"}, {"content", exchange.question}});
    messages.push_back({{"role", "assistant"}, {"content", answer_text(exchange.reply)}});
  }
  const Json all = {{"title", chat.display_title()}, {"messages", std::move(messages)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string export_name(const Chat& chat, std::string_view extension) {
  std::string name;
  for (const char letter : chat.display_title()) {
    const bool usable = std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                        static_cast<unsigned char>(letter) >= 0x80;
    if (usable)
      name += lower_letter(letter);
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}.{}", name.empty() ? "chat" : name, extension);
}

size_t search_chat(const Chat& chat, std::string_view text) {
  if (text.empty()) return 0;
  size_t found = mentions_text(chat.display_title(), text) ? 1 : 0;
  for (const ChatExchange& exchange : chat.exchanges) {
    found += mentions_text(exchange.question, text) ? 1 : 0;
    found += mentions_text(exchange.reply.text, text) ? 1 : 0;
  }
  return found;
}

bool is_attachment(const std::filesystem::path& path) {
  std::error_code error;
  return path.extension() != ".gguf" && path.extension() != ".safetensors" &&
         std::filesystem::is_regular_file(path, error);
}

Result<std::string> attachment(const std::filesystem::path& path) {
  HEARTH_ASSIGN(std::string text, read_file(path, {.most_bytes = kMostAttachedBytes}));
  const std::string name = path.filename().string();
  if (!is_text(text))
    return Error{ErrorKind::kInvalid, fmt::format("{} is not a text file in UTF-8", name)};
  // A fence longer than any in the file.
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  if (!text.empty() && text.back() != '\n') text += '\n';
  return fmt::format("{}:\n{}\n{}{}\n", name, fence, text, fence);
}

}  // namespace hearth
