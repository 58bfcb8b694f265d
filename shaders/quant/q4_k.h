// Q4_K: weight = d * scale * q - dmin * minimum, 256 weights per block, one six-bit scale and minimum per
// 32.
// File: half d; half dmin; 12 bytes of scales and minima; 128 bytes of nibbles q. On the device q is in
// the order of piece.h, 16 bytes per piece; the first 16 bytes are unchanged, see scale_and_offset.
QUANT_CONST uint kBlockWeights = 256u;
QUANT_CONST uint kBlockBytes = 144u;
QUANT_CONST uint kPlaneBytes[2] = {128u, 16u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = true;
QUANT_CONST uint kCentre = 8u;

#ifdef __cplusplus
constexpr const char* kName = "Q4_K";
constexpr uint kGgmlType = 12u;
constexpr Field kFields[] = {
    {0u, 0u, 16u, 128u, FieldOrder::kNibblePairs},
    {1u, 0u, 0u, 16u, FieldOrder::kBytes},
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
  uvec4 header;
};

QUANT_INLINE RawPiece load_piece(Planes planes, uint piece) {
  RawPiece raw;
  raw.quants = load_16b(planes.quants, piece);
  raw.header = load_16b(planes.header, piece >> 3);
  return raw;
}

QUANT_INLINE Piece decode_piece(RawPiece raw, uint piece) {
  vec2 scale = scale_and_offset(raw.header, piece & 7u);
  return scale_piece(nibble_piece(raw.quants), scale.x, scale.y);
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  return decode_piece(load_piece(planes, piece), piece);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
