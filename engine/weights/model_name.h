// What a model is called everywhere a person reads about it: messages, `hearth list`, the server's
// model id, the web page and the dashboard. Never a path.
#pragma once

#include <filesystem>
#include <string>

namespace hearth {

// The name of the file without ".gguf" and without a split set's "-00001-of-00003"; the name of the
// folder otherwise. A folder of Hugging Face's cache, models--ORG--NAME/snapshots/HASH, is NAME.
// Control characters in it are escaped, as printable() does.
std::string model_name(const std::filesystem::path& path);

}  // namespace hearth
