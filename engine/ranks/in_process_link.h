// Links between ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "engine/ranks/link.h"

namespace hearth {

// One end per rank. An end may outlive the others.
std::vector<std::unique_ptr<Link>> make_in_process_links(uint32_t ranks);

}  // namespace hearth
