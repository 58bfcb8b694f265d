#include "tools/server/api/routes.h"

#include <algorithm>
#include <vector>

#include "engine/near_words.h"

namespace hearth {
namespace {

const std::vector<Route>& all_routes() {
  static const std::vector<Route> routes = [] {
    std::vector<Route> all;
    for (const std::span<const Route> family :
         {operations_routes(), openai_routes(), responses_routes(), embeddings_routes(),
          anthropic_routes(), ollama_routes(), llama_cpp_routes(), gateway_routes(),
          control_routes()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return routes;
}

}  // namespace

const Route* find_route(std::string_view method, std::string_view address) {
  const Route* found = nullptr;
  for (const Route& route : all_routes())
    if (route.answers(address) && (found == nullptr || route.method == method)) found = &route;
  return found;
}

std::string allowed_methods(std::string_view address) {
  std::string methods;
  for (const Route& route : all_routes()) {
    if (!route.answers(address)) continue;
    if (!methods.empty()) methods += ", ";
    methods += route.method;
  }
  return methods;
}

std::string near_addresses(std::string_view address) {
  // Comparing words takes time with the square of their length.
  constexpr size_t kLongestGuess = 64;
  if (address.size() < 2 || address.size() > kLongestGuess) return {};
  std::vector<std::string> paths;
  for (const Route& route : all_routes()) paths.emplace_back(route.path);
  std::ranges::sort(paths);
  paths.erase(std::ranges::unique(paths).begin(), paths.end());
  return did_you_mean(near_words(address, paths));
}

}  // namespace hearth
