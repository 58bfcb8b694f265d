// Files that `hearth quantize` writes are as good as llama.cpp's: each type's perplexity is
// compared with the exact one of llama.cpp's own file of that type. What llama.cpp itself computes
// with that file is up to 0.6 % off, because it rounds activations to 8 bits, so it is only shown.
//
// Two texts: stories as the model was trained on, and one that it finds 100 times as surprising,
// where chance has a large part: files that differ only in the draw of their roundings lie 2 %
// apart there, and 0.4 % on stories (docs/measurements.md). The aim is 0.5 %; Q4_K is close to it
// on the second text. Q2_K and the IQ formats miss it and have a wider limit. The bytes of formats
// without a search are llama.cpp's own.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/hearth_program.h"

namespace hearth::testing {
namespace {

const std::string kGolden = HEARTH_SOURCE_DIR "/tests/models/golden/quantized_perplexity.json";
const std::string kDefaultModels = HEARTH_SOURCE_DIR "/models/default/";
const std::string kSharedModels = HEARTH_SOURCE_DIR "/../shared/models/";

double perplexity(const std::string& file, const std::string& text, int chunks) {
  return hearth_json({"perplexity", "-m", file, "-f", text, "--ctx", "256", "--chunks",
                      std::to_string(chunks)})["perplexity"]
      .get<double>();
}

// What the arithmetic of a device may add; model_commands_test holds it to that.
constexpr double kArithmetic = 0.0005;

void compare(const std::string& what, double ours, double exact, double limit) {
  fmt::print("{:<24} {:9.4f}, llama.cpp's file {:9.4f} ({:+.3f} %)\n", what, ours, exact,
             (ours / exact - 1) * 100);
  std::fflush(stdout);
  EXPECT_LE(ours, exact * (1 + limit + kArithmetic)) << what;
}

TEST(QuantizedPerplexity, IsNoWorseThanOfLlamaCppsFile) {
  const auto golden = nlohmann::json::parse(std::ifstream(kGolden), nullptr, false);
  if (!golden.is_object()) GTEST_SKIP() << "no " << kGolden;
  const std::string model = kSharedModels + golden["model"]["file"].get<std::string>();
  const std::string text = kSharedModels + golden["text"]["file"].get<std::string>();
  if (!std::filesystem::exists(model)) GTEST_SKIP() << "the shared files are not here";
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("hearth_quantized_{}", ::getpid());
  std::filesystem::create_directories(folder);
  for (const auto& entry : golden["quantized"]) {
    const std::string type = entry["format"].get<std::string>();
    // Llama.cpp's Q4_K is another name for Q4_K_M.
    if (entry["pure"].get<bool>() || type == "Q4_K_M") continue;
    const std::string file = (folder / (type + ".gguf")).string();
    const Finished made = hearth({"quantize", model, file, type});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const double limit = type == "Q2_K" || type.starts_with("IQ") ? 0.015 : 0.005;
    compare(type, perplexity(file, text, 0), entry["perplexity_exact"].get<double>(), limit);
    if (type.find("_K") != std::string::npos || type.starts_with("IQ")) {
      const auto& added = entry["added"];
      const std::string stories = kDefaultModels + added["file"].get<std::string>();
      compare(type + " on stories", perplexity(file, stories, added["chunks"].get<int>()),
              added["perplexity_exact"].get<double>(), limit);
    }
    std::filesystem::remove(file);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hearth::testing
