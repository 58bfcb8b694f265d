// A fuzz target as an ordinary test: its seeds, and a few thousand variations of them that are the
// same every time. It finds little by itself, but keeps every target building and its seeds valid,
// also under sanitizers, where clang and libFuzzer are missing.
#include <random>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz.h"

namespace hearth::fuzz {
namespace {

void run_target(const std::string& input) {
  // On the heap and of exactly this length, so that a sanitizer notices a read beyond its end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(bytes.data(), bytes.size()), 0);
}

// Changes, drops, repeats or inserts a few bytes.
std::string varied(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return random() % limit; };
  constexpr std::string_view kTelling("\0\xff\n\r\"'\\{}[]()<>%,:;-.0 9", 24);
  for (std::size_t changes = below(4) + 1; changes > 0; --changes) {
    const std::size_t at = text.empty() ? 0 : below(text.size());
    switch (text.empty() ? 3 : below(5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, below(16) + 1);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(32) + 1));
        break;
      case 3:
        text.insert(at, 1, kTelling[below(kTelling.size())]);
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(FuzzTarget, TakesItsSeedsAndVariationsOfThem) {
  const std::vector<std::string> all = seeds();
  ASSERT_FALSE(all.empty());
  run_target("");
  for (const std::string& seed : all) run_target(seed);
  // A fraction of a second; tools/fuzz is for more.
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i)
    run_target(varied(all[static_cast<std::size_t>(i) % all.size()], random));
}

}  // namespace
}  // namespace hearth::fuzz
