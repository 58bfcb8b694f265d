#include "tools/server/request_gate.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

HttpRequest request_with_header(const char* name, const char* value) {
  HttpRequest request;
  request.headers.emplace_back(name, value);
  return request;
}

// What one client was told must not speed up another's answer, so the engine has to tell them
// apart.
TEST(RequestGate, TellsClientsApartByTheirKeys) {
  const RequestGate gate(ApiKeys({"first", "second", "third"}), {});
  EXPECT_EQ(gate.client(request_with_header("authorization", "Bearer first")), 1u);
  EXPECT_EQ(gate.client(request_with_header("authorization", "bearer third")), 3u);
  EXPECT_EQ(gate.client(request_with_header("x-api-key", "second")), 2u);
  EXPECT_EQ(gate.client(request_with_header("authorization", "Bearer wrong")), 0u);
  EXPECT_EQ(gate.client({}), 0u);
}

TEST(RequestGate, WithoutKeysAllClientsAreOne) {
  const RequestGate gate(ApiKeys(), {});
  EXPECT_EQ(gate.client(request_with_header("authorization", "Bearer first")), 0u);
  EXPECT_EQ(gate.client({}), 0u);
}

}  // namespace
}  // namespace hearth
