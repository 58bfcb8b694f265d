// Who may use the server. Pure.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// Whether an Authorization header ("Bearer KEY") carries the key. Takes as long for a wrong key as
// for the right one, so that nobody finds it out letter by letter. An empty key lets everybody in.
bool has_api_key(std::string_view authorization, std::string_view key);

}  // namespace hearth
