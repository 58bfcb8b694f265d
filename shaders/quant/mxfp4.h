// MXFP4: weight = 2^(e - 128) * table[q], 32 weights per block; the table holds twice the values of
// the four-bit float, 0 1 2 3 4 6 8 12 and, from 8 up, their negatives.
// File: byte e; 16 bytes of nibbles q, byte j with weight j in its low and weight 16+j in its high nibble.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 17u;
QUANT_CONST uint kPlaneBytes[2] = {16u, 1u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "MXFP4";
constexpr uint kGgmlType = 39u;
constexpr Field kFields[] = {
    {0u, 0u, 1u, 16u, FieldOrder::kWeightBytes},
    {1u, 0u, 0u, 1u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane exponents;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.exponents = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  return planes;
}

// 2^(e - 128). The two smallest are subnormal floats; 255 gives 2^127 as in ggml, not NaN.
QUANT_INLINE float exponent_scale(uint e) {
  return uintBitsToFloat(e < 2u ? 0x00200000u << e : (e - 1u) << 23);
}

// The table as bitwise operations on bit slices, like iq4_piece: a circuit of 15 gates.
QUANT_INLINE Piece mxfp4_piece(uvec4 nibbles) {
  uvec4 b = nibble_slices(nibbles);
  uint zero = b.x & ~b.z;
  uint sign = b.w & (b.x | b.y | b.z);
  uint top = b.y & b.z;
  uint three = ~(sign ^ ((b.w & ~b.x) | ~top));
  uint same01 = ~(b.x ^ b.y);
  uint two = ~(three ^ ((three & same01) | ~b.z));
  Piece piece;
  piece.q[0] = zero;
  piece.q[1] = (two | ~zero) ^ (same01 | top);
  piece.q[2] = two;
  piece.q[3] = three;
  piece.q[4] = sign;
  piece.q[5] = sign;
  piece.q[6] = sign;
  piece.q[7] = sign;
  return transpose_bits(scale_piece(piece, 0.0f, 0.0f));
}

struct RawPiece {
  uvec4 quants;
  uint exponents;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.exponents = load_u16(planes.exponents, piece >> 1);
  return raw;
}

QUANT_INLINE uint piece_exponent(RawPiece raw, uint piece) {
  return (raw.exponents >> (8u * (piece & 1u))) & 255u;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  return scale_piece(mxfp4_piece(raw.quants), exponent_scale(piece_exponent(raw, piece)), 0.0f);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
