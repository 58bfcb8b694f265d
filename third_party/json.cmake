# nlohmann/json, headers only.
hearth_find_header(HEARTH_JSON_INCLUDE nlohmann/json.hpp)
if(HEARTH_JSON_INCLUDE)
  set(folder "${HEARTH_JSON_INCLUDE}")
else()
  hearth_download(json https://github.com/nlohmann/json.git v3.11.3 nlohmann-json3-dev)
  set(folder "${json_SOURCE}/include")
endif()
hearth_define(json INCLUDE "${folder}")
