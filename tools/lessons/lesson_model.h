// The model of a lesson's run, in the weight format that the run asks for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/session.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// `model` is what -m takes. If `weights` is not empty, the model is converted to that format in a
// temporary file, which is gone when the model is closed; only GGUF files can be converted.
Result<std::unique_ptr<ModelFile>> open_lesson_model(const std::string& model,
                                                     const std::string& weights);

// The perplexity of a text: every token but the first is scored, with all tokens before it as its
// context. REQUIRES: the session was opened with scored_rows.
Result<double> score_text(Session& session, std::string_view text);

}  // namespace hearth
