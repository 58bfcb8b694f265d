// scripted_server REPLY [TEMPLATE]: the HTTP server over a stand-in model that always gives this
// reply, with the tiny model's vocabulary and, if given, another chat template. Prints its address
// and serves until its input ends. For tests with clients that others wrote.
#include <cstdio>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "engine/text/vocabulary.h"
#include "engine/weights/model_file.h"
#include "tests/support/stand_in_engine.h"
#include "tools/server/http_server.h"

int main(int argc, char** argv) {
  using namespace hearth;
  if (argc < 2) return 2;
  auto file = ModelFile::open(HEARTH_SOURCE_DIR "/models/default/hearth-tiny-Q8_0.gguf");
  if (!file.ok()) return 1;
  auto vocabulary = read_vocabulary(**file);
  if (!vocabulary.ok()) return 1;
  if (argc > 2) vocabulary->chat_template = argv[2];
  const auto chat = ChatTemplate::create(*vocabulary).value();
  const auto tokenizer = Tokenizer::create(std::move(vocabulary).value()).value();
  hearth::testing::StandInOptions options{.limits = {.max_sequences = 8,
                                                     .max_step_tokens = 256,
                                                     .context = 4096,
                                                     .pool_blocks = 1024,
                                                     .max_queue = 64},
                                          .vocabulary = tokenizer->size()};
  options.script = tokenizer->encode(argv[1], {.add_bos = false, .parse_special = true});
  options.script.push_back(tokenizer->vocabulary().end_of_generation.front());
  hearth::testing::StandInEngine engine(options, {}, tokenizer.get());
  auto server = HttpServer::create({.port = 0});
  if (!server.ok()) return 1;
  (*server)->serve({.engine = *engine, .tokenizer = *tokenizer, .chat_template = chat.get()});
  fmt::print("http://127.0.0.1:{}\n", (*server)->port());
  std::fflush(stdout);
  while (std::cin.get() != EOF) {
  }
  server->reset();
  return 0;
}
