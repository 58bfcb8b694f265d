// Q5_1: weight = d * q + m, 32 weights per block.
// File: half d; half m; 4 bytes with bit 4 of q, bit i for weight i; 16 bytes with the low nibbles of q,
// byte j with weight j in its low and weight 16+j in its high nibble. On the device d, m and the fifth
// bits, as a bit slice (piece.h), share a plane.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 24u;
QUANT_CONST uint kPlaneBytes[2] = {16u, 8u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = true;
QUANT_CONST uint kCentre = 16u;

#ifdef __cplusplus
constexpr const char* kName = "Q5_1";
constexpr uint kGgmlType = 7u;
constexpr Field kFields[] = {
    {0u, 0u, 8u, 16u, FieldOrder::kWeightBytes},
    {1u, 0u, 0u, 4u, FieldOrder::kBytes},
    {1u, 4u, 4u, 4u, FieldOrder::kWordBits},
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
  raw.header = load_8b(planes.header, piece);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint) {
  Piece result = nibble_piece(raw.quants);
  QUANT_UNROLL for (int i = 0; i < 8; ++i) result.q[i] |= slice_bits(raw.header.y, i, 4);
  vec2 dm = unpackHalf2x16(raw.header.x);
  return scale_piece(result, dm.x, dm.y);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
