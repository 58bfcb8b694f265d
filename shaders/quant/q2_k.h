// Q2_K: weight = d * scale * q - dmin * minimum, 256 weights per block, one scale and minimum per 16.
// File: 16 bytes, each a scale in the low and a minimum in the high nibble; 64 bytes of q, two bits per
// weight; half d; half dmin. On the device q is in the order of piece.h, 8 bytes per piece.
QUANT_CONST uint kBlockWeights = 256u;
QUANT_CONST uint kBlockBytes = 84u;
QUANT_CONST uint kPlaneBytes[3] = {64u, 16u, 4u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 2u;
QUANT_CONST bool kHasOffset = true;
QUANT_CONST uint kCentre = 2u;

#ifdef __cplusplus
constexpr const char* kName = "Q2_K";
constexpr uint kGgmlType = 10u;
constexpr Field kFields[] = {
    {0u, 0u, 16u, 64u, FieldOrder::kTwoBits},
    {1u, 0u, 0u, 16u, FieldOrder::kBytes},
    {2u, 0u, 80u, 4u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane scales;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.scales = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  planes.d = next_plane(planes.scales, blocks, kPlaneBytes[1]);
  return planes;
}

struct RawPiece {
  uvec2 quants;
  uint scales;
  uint d;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_8b(planes.quants, piece);
  raw.scales = load_u16(planes.scales, piece);
  raw.d = load_u32(planes.d, piece >> 3);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint) {
  Piece result = two_bit_piece(raw.quants);
  vec2 d = unpackHalf2x16(raw.d);
  result.scale0 = d.x * float(raw.scales & 15u);
  result.scale1 = d.x * float((raw.scales >> 8) & 15u);
  result.offset0 = -(d.y * float((raw.scales >> 4) & 15u));
  result.offset1 = -(d.y * float(raw.scales >> 12));
  return result;
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
