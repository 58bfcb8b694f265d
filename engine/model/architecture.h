// An architecture: how a file's keys become a configuration, which tensors it has, and what a layer
// computes. There is one file per architecture in engine/models/, found by the build:
// models/<name>.cpp defines `const Architecture& <name>_architecture()`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/model/model_config.h"
#include "engine/model/weight_table.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

class Builder;

class Architecture {
 public:
  virtual ~Architecture() = default;

  // As in general.architecture.
  virtual std::string_view name() const = 0;
  // Fails if a key is missing or invalid. Does not check tensors.
  virtual Result<ModelConfig> read_config(const ModelFile& file) const = 0;
  virtual WeightTable weight_table(const ModelConfig& config) const = 0;
  // Emits the ops of a layer, builder.layer(), which reads and writes Value::kHidden.
  virtual void emit_layer(Builder& builder) const = 0;
};

// All architectures, sorted by name.
std::span<const Architecture* const> all_architectures();

// The architecture that the file names. The error lists the supported ones.
Result<const Architecture*> find_architecture(const ModelFile& file);

}  // namespace hearth
