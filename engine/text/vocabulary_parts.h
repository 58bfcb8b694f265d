// The two readers behind read_vocabulary, and helpers they share. Private to this folder.
#pragma once

#include <string_view>

#include "engine/text/vocabulary.h"

namespace hearth {

class Metadata;

Result<Vocabulary> read_gguf_vocabulary(const Metadata& metadata);

// `tokenizer_config` may be empty because the file is optional. `metadata` comes from config.json.
Result<Vocabulary> read_hugging_face_vocabulary(std::string_view tokenizer,
                                                std::string_view tokenizer_config,
                                                const Metadata& metadata);

// Adds EOS, and tokens with well-known end-of-turn names, to end_of_generation. These become
// control tokens, even if the file declares them as added tokens.
void find_end_of_generation(Vocabulary& vocabulary);

}  // namespace hearth
