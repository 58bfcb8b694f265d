// One message to a chat model, and its answer. Waits for the engine.
#pragma once

#include <string>

#include "engine/generation.h"
#include "engine/session.h"
#include "runtime/result.h"

namespace hearth {

struct ModelAnswer {
  std::string text;
  GenerationEnd end;
};

// What the model answers to a user's message, through its chat template and with the most probable
// token at every place. `request` says everything else: the length, a grammar. An error is a model
// without a chat template, or why the request failed.
Result<ModelAnswer> ask_model(Session& session, GenerationRequest request, std::string message);

}  // namespace hearth
