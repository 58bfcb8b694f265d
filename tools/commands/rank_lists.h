// Reads the values of the options of ranks.
#pragma once

#include <string>

#include "engine/rank_options.h"

namespace hearth {

// "0,1" and "20,12". REQUIRES: problem_with_layers(layers) is empty.
void read_ranks(const std::string& devices, const std::string& layers, RankOptions& ranks);
// Empty if there is none.
std::string problem_with_devices(const std::string& devices);
std::string problem_with_layers(const std::string& layers);
std::string problem_with_split(const std::string& split);
std::string problem_with_divided_rows(const std::string& rows);

}  // namespace hearth
