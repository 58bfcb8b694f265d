// Writes the target's seeds into the folder that HEARTH_FUZZ_SEEDS names, before libFuzzer reads
// its corpus.
#include <cstdlib>
#include <fstream>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* const folder = std::getenv("HEARTH_FUZZ_SEEDS");
  if (folder == nullptr) return 0;
  const std::vector<std::string> seeds = hearth::fuzz::seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(std::string(folder) + "/seed_" + std::to_string(i), std::ios::binary);
    file << seeds[i];
  }
  return 0;
}
