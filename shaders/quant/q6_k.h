// Q6_K: weight = d * scale * (q - 32), 256 weights per block, one signed byte of scale per 16.
// File: 128 bytes with the low nibbles of q; 64 bytes with bits 4 and 5 of q; 16 bytes of scales;
// half d. On the device the bits of q are in the order of piece.h, 16 and 8 bytes per piece.
QUANT_CONST uint kBlockWeights = 256u;
QUANT_CONST uint kBlockBytes = 210u;
QUANT_CONST uint kPlaneBytes[4] = {128u, 64u, 16u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 2u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "Q6_K";
constexpr uint kGgmlType = 14u;
constexpr Field kFields[] = {
    {0u, 0u, 0u, 128u, FieldOrder::kNibbleFours},
    {1u, 0u, 128u, 64u, FieldOrder::kTwoBits},
    {2u, 0u, 192u, 16u, FieldOrder::kBytes},
    {3u, 0u, 208u, 2u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane high;
  Plane scales;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.high = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  planes.scales = next_plane(planes.high, blocks, kPlaneBytes[1]);
  planes.d = next_plane(planes.scales, blocks, kPlaneBytes[2]);
  return planes;
}

struct RawPiece {
  uvec4 quants;
  uvec2 high;
  uint scales;
  uint d;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.high = load_8b(planes.high, piece);
  raw.scales = load_u16(planes.scales, piece);
  raw.d = load_u16(planes.d, piece >> 3);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint) {
  Piece result = nibble_piece_at(raw.quants, 2);
  Piece high = two_bit_piece_at(raw.high, 6);
  QUANT_UNROLL for (int i = 0; i < 8; ++i) result.q[i] |= high.q[i];
  result = subtract_half_range(result);
  int scales = int(raw.scales);
  float d = half_to_float(raw.d) / 4.0f;
  result.scale0 = d * float(bitfieldExtract(scales, 0, 8));
  result.scale1 = d * float(bitfieldExtract(scales, 8, 8));
  return result;
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
