// Q4_0: weight = d * (q - 8), 32 weights per block.
// File: half d; 16 bytes of nibbles q, byte j with weight j in its low and weight 16+j in its high nibble.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 18u;
QUANT_CONST uint kPlaneBytes[2] = {16u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "Q4_0";
constexpr uint kGgmlType = 2u;
constexpr Field kFields[] = {
    {0u, 0u, 2u, 16u, FieldOrder::kWeightBytes},
    {1u, 0u, 0u, 2u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.d = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  return planes;
}

struct RawPiece {
  uvec4 quants;
  uint d;  // see load_half()
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.d = load_half(planes.d, piece);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  Piece result = subtract_half_range(nibble_piece_at(raw.quants, 4));
  return scale_piece(result, half_of_piece(raw.d, piece) / 16.0f, 0.0f);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
