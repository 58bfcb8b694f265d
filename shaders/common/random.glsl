// Philox 4x32 with 10 rounds (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3",
// 2011): 128 random bits as a pure function of a key and a counter, with no state to carry.
#ifndef HEARTH_RANDOM_GLSL
#define HEARTH_RANDOM_GLSL

uvec4 philox(uvec4 counter, uvec2 key) {
  for (uint i = 0; i < 10; ++i) {
    uint high0, low0, high1, low1;
    umulExtended(0xd2511f53u, counter.x, high0, low0);
    umulExtended(0xcd9e8d57u, counter.z, high1, low1);
    counter = uvec4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += uvec2(0x9e3779b9u, 0xbb67ae85u);
  }
  return counter;
}

#endif
