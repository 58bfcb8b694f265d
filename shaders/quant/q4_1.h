// Q4_1: weight = d * q + m, 32 weights per block.
// File: half d; half m; 16 bytes of nibbles q, byte j with weight j in its low and weight 16+j in its high
// nibble.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 20u;
QUANT_CONST uint kPlaneBytes[2] = {16u, 4u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = true;
QUANT_CONST uint kCentre = 8u;

#ifdef __cplusplus
constexpr const char* kName = "Q4_1";
constexpr uint kGgmlType = 3u;
constexpr Field kFields[] = {
    {0u, 0u, 4u, 16u, FieldOrder::kWeightBytes},
    {1u, 0u, 0u, 4u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane dm;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.dm = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  return planes;
}

struct RawPiece {
  uvec4 quants;
  uint dm;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.dm = load_u32(planes.dm, piece);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint) {
  vec2 dm = unpackHalf2x16(raw.dm);
  return scale_piece(nibble_piece(raw.quants), dm.x, dm.y);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
