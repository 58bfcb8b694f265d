// Q3_K: weight = d * (scale - 32) * (q - 4), 256 weights per block, one six-bit scale per 16.
// File: 32 bytes with bit 2 of q; 64 bytes with the low two bits of q; 12 bytes of scales; half d.
// On the device the bits of q are in the order of piece.h, 8 and 4 bytes per piece; the scales are split
// into 8 bytes of low nibbles and 4 bytes of high bits.
QUANT_CONST uint kBlockWeights = 256u;
QUANT_CONST uint kBlockBytes = 110u;
QUANT_CONST uint kPlaneBytes[5] = {64u, 32u, 8u, 4u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 2u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "Q3_K";
constexpr uint kGgmlType = 11u;
constexpr Field kFields[] = {
    {0u, 0u, 32u, 64u, FieldOrder::kTwoBits}, {1u, 0u, 0u, 32u, FieldOrder::kOneBits},
    {2u, 0u, 96u, 8u, FieldOrder::kBytes},    {3u, 0u, 104u, 4u, FieldOrder::kBytes},
    {4u, 0u, 108u, 2u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane high;
  Plane scales_low;
  Plane scales_high;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.high = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  planes.scales_low = next_plane(planes.high, blocks, kPlaneBytes[1]);
  planes.scales_high = next_plane(planes.scales_low, blocks, kPlaneBytes[2]);
  planes.d = next_plane(planes.scales_high, blocks, kPlaneBytes[3]);
  return planes;
}

struct RawPiece {
  uvec2 quants;
  uint high;
  uint scales_low;
  uint scales_high;
  uint d;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_8b(planes.quants, piece);
  raw.high = load_u32(planes.high, piece);
  raw.scales_low = load_u16(planes.scales_low, (piece >> 3) * 4u + (piece & 3u));
  raw.scales_high = load_u32(planes.scales_high, piece >> 3);
  raw.d = load_u16(planes.d, piece >> 3);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  Piece result = two_bit_piece(raw.quants);
  QUANT_UNROLL for (int i = 0; i < 8; ++i) result.q[i] |= slice_bits(raw.high, i, 2);
  result = subtract_all(result, 4u);
  // scales_low has scales 0 to 7 in its low and 8 to 15 in its high nibbles; bits 2t and 2t+1 of byte j
  // of scales_high belong to scale 4t+j.
  uint index = piece & 7u;
  uint low = raw.scales_low >> (index & 4u);
  uint top = raw.scales_high >> (16u * (index & 1u) + (index & 6u));
  float d = half_to_float(raw.d);
  int scale0 = int((low & 15u) | ((top & 3u) << 4)) - 32;
  int scale1 = int(((low >> 8) & 15u) | ((top >> 4) & 48u)) - 32;
  result.scale0 = d * float(scale0);
  result.scale1 = d * float(scale1);
  return result;
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
