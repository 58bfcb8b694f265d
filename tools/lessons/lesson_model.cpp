#include "tools/lessons/lesson_model.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "engine/model_library.h"
#include "engine/open_model_file.h"
#include "engine/weights/gguf_file.h"
#include "engine/weights/quantize_file.h"
#include "models/default_model.h"

namespace hearth {
namespace {

Result<std::unique_ptr<GgufFile>> open_gguf(const std::string& model) {
  HEARTH_ASSIGN(const LibraryModel found, find_model(model));
  if (found.path.empty())
    return GgufFile::from_memory(default_model(), std::string(default_model_name()));
  if (found.format != "GGUF")
    return Error{ErrorKind::kUnsupported,
                 fmt::format("this lesson converts the model's weights, which needs a .gguf file; "
                             "{} is a folder of safetensors files",
                             found.name)};
  return GgufFile::open(found.path);
}

}  // namespace

Result<std::unique_ptr<ModelFile>> open_lesson_model(const std::string& model,
                                                     const std::string& weights) {
  if (weights.empty()) return open_model_file(model);
  HEARTH_ASSIGN(const std::unique_ptr<GgufFile> source, open_gguf(model));
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed)
    return Error{ErrorKind::kIo,
                 fmt::format("there is no folder for temporary files: {}", failed.message())};
  const std::filesystem::path path =
      folder / fmt::format("hearth-lesson-{}-{}.gguf", getpid(), weights);
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  HEARTH_TRY(quantize_file(*source, path, *find_quantize_type(weights), threads));
  Result<std::unique_ptr<GgufFile>> converted = GgufFile::open(path);
  // It is mapped now, so its bytes stay until it is closed.
  std::filesystem::remove(path, failed);
  if (!converted.ok()) return std::move(converted).error();
  return std::unique_ptr<ModelFile>(std::move(*converted));
}

Result<double> score_text(Session& session, std::string_view text) {
  if (session.tokenizer() == nullptr)
    return unsupported("this lesson reads a text, and the model has no vocabulary");
  GenerationRequest request{.prompt = session.tokenizer()->encode(text)};
  request.prompt_logprobs = true;
  request.generate = false;
  Engine engine(session.runner(), session.tokenizer(), session.engine_options());
  HEARTH_ASSIGN(TokenStream stream, engine.submit(std::move(request)));
  while (stream.next()) {
  }
  if (stream.end().reason == FinishReason::kError)
    return Error{ErrorKind::kInternal, stream.end().message};
  double sum = 0;
  for (const PromptLogprob& token : stream.prompt_logprobs()) sum += token.logprob;
  return std::exp(-sum / static_cast<double>(stream.prompt_logprobs().size()));
}

}  // namespace hearth
