// The golden models of tests/models/golden: tiny models of every architecture with their correct
// logits, written by tools/make_golden.py.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/result.h"

namespace hearth::testing {

struct GoldenModel {
  std::string name;
  std::filesystem::path folder;  // what a user would pass to -m
  uint32_t vocab = 0;
  uint32_t context = 0;  // to run it with; long-rope selects its factors by this
  std::vector<std::vector<uint32_t>> prompts;
  std::vector<float> all_logits;  // [position][vocab], one prompt after the other

  // The model's logits after prompts[prompt][0..position].
  std::span<const float> logits(size_t prompt, size_t position) const {
    size_t row = position;
    for (size_t i = 0; i < prompt; ++i) row += prompts[i].size();
    return std::span(all_logits).subspan(row * vocab, vocab);
  }
};

inline std::filesystem::path golden_models_folder() {
  return std::filesystem::path(HEARTH_SOURCE_DIR) / "tests" / "models" / "golden";
}

// The names of all cases, sorted: every folder with a golden.json.
inline std::vector<std::string> golden_model_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(golden_models_folder(), error)) {
    if (std::filesystem::exists(entry.path() / "golden.json"))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Fails if a file is missing or the number of logits does not match the prompts.
inline Result<GoldenModel> read_golden_model(const std::string& name) {
  static_assert(std::endian::native == std::endian::little);
  GoldenModel model;
  model.name = name;
  model.folder = golden_models_folder() / name;

  std::ifstream description(model.folder / "golden.json");
  const auto json = nlohmann::json::parse(description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("prompts") || !json.contains("vocab") ||
      !json.contains("context"))
    return Error{ErrorKind::kNotFound, "no golden model in " + model.folder.string()};
  model.vocab = json["vocab"].get<uint32_t>();
  model.context = json["context"].get<uint32_t>();
  model.prompts = json["prompts"].get<std::vector<std::vector<uint32_t>>>();

  std::ifstream file(model.folder / "logits.bin", std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  size_t positions = 0;
  for (const auto& prompt : model.prompts) positions += prompt.size();
  if (positions == 0 || bytes.size() != positions * model.vocab * sizeof(float))
    return Error{ErrorKind::kInvalid, "logits.bin of " + name + " has the wrong length"};
  model.all_logits.resize(bytes.size() / sizeof(float));
  std::memcpy(model.all_logits.data(), bytes.data(), bytes.size());
  return model;
}

}  // namespace hearth::testing
