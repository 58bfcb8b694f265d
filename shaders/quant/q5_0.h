// Q5_0: weight = d * (q - 16), 32 weights per block.
// File: half d; 4 bytes with bit 4 of q, bit i for weight i; 16 bytes with the low nibbles of q, byte j
// with weight j in its low and weight 16+j in its high nibble. On the device the fifth bits are a bit
// slice (piece.h).
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 22u;
QUANT_CONST uint kPlaneBytes[3] = {16u, 4u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "Q5_0";
constexpr uint kGgmlType = 6u;
constexpr Field kFields[] = {
    {0u, 0u, 6u, 16u, FieldOrder::kWeightBytes},
    {1u, 0u, 2u, 4u, FieldOrder::kWordBits},
    {2u, 0u, 0u, 2u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane high;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.high = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  planes.d = next_plane(planes.high, blocks, kPlaneBytes[1]);
  return planes;
}

struct RawPiece {
  uvec4 quants;
  uint high;
  uint d;  // see load_half()
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.high = load_u32(planes.high, piece);
  raw.d = load_half(planes.d, piece);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  Piece result = nibble_piece(raw.quants);
  QUANT_UNROLL for (int i = 0; i < 8; ++i) result.q[i] |= slice_bits(raw.high, i, 4);
  return scale_piece(subtract_all(result, 16u), half_of_piece(raw.d, piece), 0.0f);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
