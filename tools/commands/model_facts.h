// What can be said about a model before it is loaded, from its header and the device's description:
// what `hearth info` prints. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "engine/memory_plan.h"
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

  // Nothing for a file without tensors, whose architecture may be any.
  std::optional<ModelPlan> plan;
  uint64_t kv_bytes_per_token = 0;

  // Nothing where no device can be used, and then why.
  std::optional<DeviceCaps> device;
  std::string no_device;
  std::optional<MemoryPlan> memory;
  StepLimits limits;           // that the memory was planned for
  uint32_t asked_context = 0;  // which may be more than the model was made for
};

// Fails for a file that could not be loaded on any device.
Result<ModelFacts> model_facts(const ModelFile& file, const SessionOptions& options);

}  // namespace hearth
