// A server on an engine without a device: the tiny model's vocabulary on the stand-in executor.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"
#include "runtime/log.h"
#include "tests/support/http_client.h"
#include "tests/support/stand_in_engine.h"
#include "tools/server/http_server.h"

namespace hearth::testing {

class ServedStandIn : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto vocabulary = read_vocabulary(**file);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    if (const std::string source = chat_source(); !source.empty())
      vocabulary->chat_template = source;
    chat_ = ChatTemplate::create(*vocabulary).value();
    tokenizer_ = Tokenizer::create(std::move(vocabulary).value()).value();
    StandInOptions options{.limits = {.max_sequences = 8,
                                      .max_step_tokens = 64,
                                      .context = context(),
                                      .pool_blocks = 256,
                                      .max_queue = 64}};
    options.vocabulary = tokenizer_->size();
    options.script = script();
    engine_ = std::make_unique<StandInEngine>(options, Policy{}, tokenizer_.get());
    serve({.port = 0});
  }
  // Starts the server anew, with other options.
  void serve(const ServerOptions& options) {
    auto server = HttpServer::create(options);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
    server_->serve({.engine = **engine_,
                    .tokenizer = *tokenizer_,
                    .chat_template = chat_.get(),
                    .embedding = {.width = kStandInWidth}});
  }
  void TearDown() override { server_.reset(); }
  // The chat template; empty: the model's own.
  virtual std::string chat_source() const { return {}; }
  virtual uint32_t context() const { return 256; }
  // The text of every reply; empty: made-up tokens.
  virtual std::vector<TokenId> script() const { return {}; }

  HttpAnswer get(const std::string& path) const { return HttpClient(server_->port()).get(path); }
  HttpAnswer post(const std::string& path, const std::string& body) const {
    return HttpClient(server_->port()).post(path, body);
  }

  const ScopedLogSink quiet_{[](std::string_view) {}};
  std::unique_ptr<ChatTemplate> chat_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<StandInEngine> engine_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace hearth::testing
