// How fast texts become ids: MB/s for each vocabulary in ../shared, on English text and on
// one line of a repeated character. Built with the tests, run by hand:
//   tokenizer_bench [TEXT_FILE]
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

double best_seconds(const Tokenizer& tokenizer, const std::string& text, int rounds) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer.encode(text);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

void measure(const char* name, const std::string& english) {
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = published(name);
  if (!tokenizer) return;
  const std::chrono::duration<double> loading = std::chrono::steady_clock::now() - start;
  const double seconds = best_seconds(*tokenizer, english, 5);
  const std::string line(1'000'000, 'a');
  fmt::print("{:10} load {:.2f} s, English {:.1f} MB/s, 1 MB of 'a' {:.3f} s, of spaces {:.3f} s\n",
             name, loading.count(), static_cast<double>(english.size()) / 1e6 / seconds,
             best_seconds(*tokenizer, line, 3),
             best_seconds(*tokenizer, std::string(1'000'000, ' '), 3));
}

}  // namespace
}  // namespace hearth::testing

int main(int count, char** arguments) {
  using namespace hearth::testing;
  const auto shared = shared_vocabularies().parent_path();
  const std::string english =
      read_text(count > 1 ? std::filesystem::path(arguments[1]) : shared / "models" / "eval.txt");
  if (english.empty()) {
    fmt::print(stderr, "tokenizer_bench: no text to measure with; name a file\n");
    return 1;
  }
  fmt::print("{:.1f} MB of text\n", static_cast<double>(english.size()) / 1e6);
  for (const char* name : {"gpt-2", "llama-spm", "llama-bpe"}) measure(name, english);
}
