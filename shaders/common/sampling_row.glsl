// A row of logits as the kernels after sample_scan see it, and a cut of its order: largest logit first,
// lowest id first among equals.
#ifndef HEARTH_SAMPLING_ROW_GLSL
#define HEARTH_SAMPLING_ROW_GLSL

// The last token kept. Tokens with larger keys, or the same key and a lower id, are kept too.
struct Cut {
  uint key;
  uint id;
};

const Cut kEverything = Cut(kMinusInfinityKey + 1, 0xffffffffu);

bool is_kept(Cut cut, uint key, uint id) {
  return key > cut.key || (key == cut.key && id <= cut.id);
}

struct Row {
  uint64_t logits;
  uint64_t segments;
  uint64_t chunks;
  uint vocab;
  uint segment_count;
  uint first_segment, end_segment;  // to be read
  float top_logit;
  uint lowest_key;
};

#endif
