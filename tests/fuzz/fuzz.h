// What a fuzz target defines. libFuzzer calls the first for every input it makes up; seeds.cpp
// writes the inputs of the second where tools/fuzz wants them, for libFuzzer to begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Must end, whatever the bytes, without a crash or a finding of the sanitizers. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearth::fuzz {

// Small inputs that get past the first checks: bytes, however few.
std::vector<std::string> seeds();

}  // namespace hearth::fuzz
