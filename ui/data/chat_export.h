// Conversations for other programs, searching in them, and text files that become part of a
// question. Functions without state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/result.h"
#include "ui/data/chat.h"

namespace hearth {

// Headings for the two speakers and the messages as they are; an answer's reasoning is quoted.
std::string export_markdown(const Chat& chat);
// An object with a title and a list "messages" of role and content, as chat APIs take it.
std::string export_json(const Chat& chat);
// A file name without folder, made of the title: "a-lost-boat.md". `extension` without a dot.
std::string export_name(const Chat& chat, std::string_view extension);

// How many messages contain the text, in any case of ASCII letters; the title counts as one.
size_t search_chat(const Chat& chat, std::string_view text);

// Whether a dropped file is meant for the chat: it is not a model.
bool is_attachment(const std::filesystem::path& path);
// A text file as part of a question: its name and its contents in a fence. Fails if it is not
// UTF-8 text or larger than 256 KiB. Blocks.
Result<std::string> attachment(const std::filesystem::path& path);

}  // namespace hearth
