// What the server needs of a model: an engine and its text. A session has all of it; tests make
// their own, without a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/model/step_preparation.h"
#include "engine/sampling_defaults.h"
#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"
#include "engine/text/tool_calls/reply_style.h"
#include "runtime/result.h"

namespace hearth {

struct ServedModel {
  Engine& engine;
  const Tokenizer& tokenizer;
  Result<const ChatTemplate*> chat_template;  // or why there is none
  std::string name = "hearth";                // its id in replies
  std::string device = {};                    // where it runs, for people
  SamplingOptions default_sampling = kHearthSampling;
  // How its replies are read for reasoning and calls; null: they are text.
  std::shared_ptr<const ReplyStyle> style = nullptr;
  std::string example = {};  // a message to try it with, for the page; may be empty
  // For clients that show what they talk to.
  struct About {
    std::string version;       // of Hearth
    std::string architecture;  // "llama"
    std::string format;        // that most of the weights have: "Q8_0"
    uint64_t parameters = 0, bytes = 0;
  };
  About about = {};
  // How embeddings are made, unless a request says otherwise.
  struct Embedding {
    uint32_t width = 0;  // the model's; 0: it makes none
    Pooling pooling = Pooling::kMean;
    bool add_eos = false;  // to texts
  };
  Embedding embedding = {};
  // How far compiling kernels in the background has come; empty: there is no such thing.
  std::function<PreparationProgress()> preparation = {};
};

}  // namespace hearth
