// The kinds of tokenizers, one file each, and helpers they share. Private to this folder.
#pragma once

#include <memory>

#include "engine/text/merge_table.h"
#include "engine/text/string_ids.h"
#include "engine/text/tokenizer.h"

namespace hearth {

Result<std::unique_ptr<Tokenizer>> create_byte_pair(Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_sentence_piece(Vocabulary vocabulary);

// Maps each token's text to its id. Fails if a text occurs twice; tokens without text are left out.
Result<StringIds> index_tokens(const Vocabulary& vocabulary);

// Builds the merge table. `ids` has every token; an error names the bad merge.
Result<MergeTable> read_merges(const Vocabulary& vocabulary, const StringIds& ids);

}  // namespace hearth
