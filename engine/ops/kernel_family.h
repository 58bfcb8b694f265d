// A family of kernels that can run an op, and how it does so. The kernels of a family share one
// source and one set of constants, declared in shaders/params with the arguments that they take.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace hearth {

// A request is an op's shape, the device, and all else that the plan depends on. Both functions are
// pure.
template <class Request, class Plan>
struct KernelFamily {
  std::string_view name;  // what its kernels' names begin with
  bool (*supports)(const Request& request);
  Plan (*plan)(const Request& request);  // REQUIRES: supports()
};

// The first of the families that supports the request, or null. Lists begin with the kernels that
// are the fastest where they can be used.
template <class Request, class Plan>
const KernelFamily<Request, Plan>* first_supporting(
    std::span<const KernelFamily<Request, Plan>* const> families, const Request& request) {
  const auto found =
      std::ranges::find_if(families, [&](const auto* family) { return family->supports(request); });
  return found == families.end() ? nullptr : *found;
}

}  // namespace hearth
