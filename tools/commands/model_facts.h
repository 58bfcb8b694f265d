// What is known about a model before it is loaded, from its header and the device's capabilities:
// what `hearth info` prints. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/memory_plan.h"
#include "engine/sampling_defaults.h"
#include "engine/session.h"
#include "engine/text/vocabulary.h"
#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

struct FormatUse {
  uint64_t tensors = 0, parameters = 0, bytes = 0;  // in the file
};

struct ModelFacts {
  std::string name, architecture;
  uint64_t tensors = 0;
  std::map<std::string, FormatUse> formats;

  VocabularyKind vocabulary = VocabularyKind::kNone;
  uint64_t vocabulary_tokens = 0;
  std::string pretokenizer;
  bool chat_template = false;
  SamplingDefaults sampling;

  // Empty for a file without tensors, which may have any architecture.
  std::optional<ModelPlan> plan;
  uint64_t kv_bytes_per_token = 0;

  // Empty if no device can be used; no_device says why.
  std::optional<DeviceCaps> device;
  std::string no_device;
  std::optional<MemoryPlan> memory;
  StepLimits limits;           // of the memory plan
  uint32_t asked_context = 0;  // may be longer than the model was trained for

  // Models that are loaded beside it; the memory plan includes them.
  struct Companion {
    std::string name;
    uint64_t weight_bytes = 0, kv_bytes_per_token = 0;
  };
  std::optional<Companion> draft, amateur;
};

// Fails for a file that no device could load.
Result<ModelFacts> model_facts(const ModelFile& file, const SessionOptions& options);

}  // namespace hearth
