// The two functions that a fuzz target defines. libFuzzer calls the first for every input it
// generates; seeds.cpp writes the inputs of the second, from which libFuzzer starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Must return 0 for any bytes, without a crash or a sanitizer error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hearth::fuzz {

// Small inputs that pass the first checks.
std::vector<std::string> seeds();

}  // namespace hearth::fuzz
