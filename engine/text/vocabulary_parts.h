// The two readers behind read_vocabulary, and what they share. Private to this folder.
#pragma once

#include <string_view>

#include "engine/text/vocabulary.h"

namespace hearth {

class Metadata;

Result<Vocabulary> read_gguf_vocabulary(const Metadata& metadata);

// `tokenizer_config` may be empty: the file is optional. `metadata` is what config.json said.
Result<Vocabulary> read_hugging_face_vocabulary(std::string_view tokenizer,
                                                std::string_view tokenizer_config,
                                                const Metadata& metadata);

// Adds EOS, and the tokens that end a turn by their well-known names, to end_of_generation. Such a
// token is a control token from then on, even if the file calls it an added one.
void find_end_of_generation(Vocabulary& vocabulary);

}  // namespace hearth
