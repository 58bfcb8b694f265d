// What a browser is shown; files of this repository that the build puts into the program.
#pragma once

#include <string_view>

namespace hearth {

// At /: chat and live numbers. page.html of this folder.
std::string_view page_html();
// At /docs: docs/server.md.
std::string_view server_docs();

}  // namespace hearth
