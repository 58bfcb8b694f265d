// Q8_0: weight = d * q, 32 weights per block.
// File: half d; 32 signed bytes q.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 34u;
QUANT_CONST uint kPlaneBytes[2] = {32u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;
QUANT_CONST uint kCentre = 0u;

#ifdef __cplusplus
constexpr const char* kName = "Q8_0";
constexpr uint kGgmlType = 8u;
constexpr Field kFields[] = {
    {0u, 0u, 2u, 32u, FieldOrder::kWeightBytes},
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
  uvec4 low;
  uvec4 high;
  uint d;  // see load_half()
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.low = load_16b(planes.quants, piece * 2u);
  raw.high = load_16b(planes.quants, piece * 2u + 1u);
  raw.d = load_half(planes.d, piece);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  Piece result;
  result.q[0] = raw.low.x;
  result.q[1] = raw.low.y;
  result.q[2] = raw.low.z;
  result.q[3] = raw.low.w;
  result.q[4] = raw.high.x;
  result.q[5] = raw.high.y;
  result.q[6] = raw.high.z;
  result.q[7] = raw.high.w;
  return scale_piece(result, half_of_piece(raw.d, piece), 0.0f);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
