// The kinds of tokenizers, one file each, and what they share. Private to this folder.
#pragma once

#include <memory>

#include "engine/text/merge_table.h"
#include "engine/text/string_ids.h"
#include "engine/text/tokenizer.h"

namespace hearth {

Result<std::unique_ptr<Tokenizer>> create_byte_pair(Vocabulary vocabulary);
Result<std::unique_ptr<Tokenizer>> create_sentence_piece(Vocabulary vocabulary);

// Every token by its text, which must be there once; tokens without text are left out.
Result<StringIds> index_tokens(const Vocabulary& vocabulary);

// Merges as the table wants them. `ids` has every token; messages name what is wrong.
Result<MergeTable> read_merges(const Vocabulary& vocabulary, const StringIds& ids);

}  // namespace hearth
