// IQ4_XS: weight = d * (scale - 32) * table[q], 256 weights per block, one six-bit scale per 32 weights;
// iq4_piece has the table.
// File: half d; 16 bits with the high two bits of each scale; 4 bytes with the low nibble of each;
// 128 bytes of nibbles q; in each 16 bytes, byte j has weight j in its low and weight 16+j in its high
// nibble.
QUANT_CONST uint kBlockWeights = 256u;
QUANT_CONST uint kBlockBytes = 136u;
QUANT_CONST uint kPlaneBytes[2] = {128u, 8u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "IQ4_XS";
constexpr uint kGgmlType = 23u;
constexpr Field kFields[] = {
    {0u, 0u, 8u, 128u, FieldOrder::kWeightBytes},
    {1u, 0u, 0u, 8u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane header;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.header = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  return planes;
}

struct RawPiece {
  uvec4 quants;
  uvec2 header;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.header = load_8b(planes.header, piece >> 3);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  uint index = piece & 7u;
  uint low = (raw.header.y >> (4u * index)) & 15u;
  uint high = (raw.header.x >> (16u + 2u * index)) & 3u;
  float scale = half_to_float(raw.header.x & 0xffffu) * float(int(low | (high << 4)) - 32);
  return scale_piece(iq4_piece(raw.quants), scale, 0.0f);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
