// Finds the words somebody may have meant: for messages about a command, an option or a model that
// does not exist. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// At most `most` of the known words, the nearest first: those that differ from `wanted` by the
// fewest typos; if that would be too many typos, those that contain it, are contained in it, or
// begin like it. Upper and lower case are the same.
std::vector<std::string> near_words(std::string_view wanted, std::span<const std::string> known,
                                    size_t most = 3);

// "; did you mean A?", "; did you mean A, B or C?" or nothing, for the end of a message.
std::string did_you_mean(std::span<const std::string> near);

// "A", "A or B", "A, B or C".
std::string joined_with_or(std::span<const std::string> words);

// A to Z only; names of files and options need no more.
std::string lower_case(std::string_view text);

// Letters that have to be added, dropped, replaced or swapped with their neighbour to get from one
// word to the other.
size_t edit_distance(std::string_view from, std::string_view to);

}  // namespace hearth
