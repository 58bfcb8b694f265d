// Where kept hidden states are. Expects the kernel's params.
#ifndef HEARTH_HIDDEN_PAGES_GLSL
#define HEARTH_HIDDEN_PAGES_GLSL

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate buffer HiddenPages {
  uint64_t at[];
};

// The row of a token, as vecs of eight halves. REQUIRES: position < slot_pages * kHiddenPageTokens.
uint64_t hidden_row(uint slot, uint position) {
  const uint64_t page =
      HiddenPages(params.pages).at[slot * params.slot_pages + position / kHiddenPageTokens];
  return page + uint64_t(position % kHiddenPageTokens) * params.width * 2;
}

#endif
