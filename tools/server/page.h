// Files of this repository that the build puts into the program, for browsers.
#pragma once

#include <string_view>

namespace hearth {

// For /: page.html of this folder, a chat with live numbers.
std::string_view page_html();
// For /docs: docs/server.md.
std::string_view server_docs();

}  // namespace hearth
