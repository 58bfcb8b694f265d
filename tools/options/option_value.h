// The variables that options write to, and how text becomes their values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth {

// What an option sets. A bool is a flag that takes no value; a vector takes many values;
// an optional stays empty unless the option is given.
using OptionTarget =
    std::variant<bool*, std::string*, std::filesystem::path*, int*, uint32_t*, uint64_t*, float*,
                 double*, std::vector<std::string>*, std::vector<uint32_t>*, std::optional<bool>*,
                 std::optional<std::string>*, std::optional<int>*, std::optional<uint32_t>*,
                 std::optional<uint64_t>*, std::optional<float>*, std::optional<double>*>;

struct OptionRange {
  double lowest = 0, highest = 0;  // both included; whole numbers up to 2^53 are exact
};

bool is_flag(const OptionTarget& target);
bool is_list(const OptionTarget& target);
bool is_number(const OptionTarget& target);
void clear_list(const OptionTarget& target);              // does nothing to other variables
void store_flag(const OptionTarget& target, bool value);  // REQUIRES: a flag

// Reads `text` and stores it; a list grows by one. Otherwise returns what is wrong with the text
// and leaves the variable as it was. REQUIRES: no flag.
//
// Whole numbers are decimal, or hexadecimal after 0x. "010" is refused, because some programs read
// it as 8 and others as 10. NaN and infinities are refused.
std::optional<std::string> store_value(const OptionTarget& target, std::string_view text,
                                       const std::optional<OptionRange>& range);

// A number of bytes: "4096", "512MB", "1.5 GiB". K, M, G and T are powers of 1024.
std::optional<std::string> store_size(const OptionTarget& target, std::string_view text,
                                      const std::optional<OptionRange>& range);

// The value as help shows it. Empty for flags, optionals, 0, "" and empty lists, which need no
// mention.
std::string value_text(const OptionTarget& target);
// The same for a number of bytes: "8MB".
std::string size_text(const OptionTarget& target);

}  // namespace hearth
