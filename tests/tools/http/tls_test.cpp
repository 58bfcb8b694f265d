// https:// servers: a certificate that nobody trusts is an error that says so.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scripted_peer.h"
#include "tests/support/tls_peer.h"
#include "tools/http/http_transfers.h"

namespace hearth::testing {
namespace {

TEST(HttpTransfersTls, OnlyATrustedCertificateIsAccepted) {
  if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
  const TlsPeer peer("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello");
  if (!peer.runs()) GTEST_SKIP() << "openssl is not installed";
  const auto transfers = HttpTransfers::create().value();
  const TransferRequest request{
      .server = {.tls = true, .host = "127.0.0.1", .port = std::to_string(peer.port())},
      .path = "/events",
      .total_seconds = 20};
  const WholeResponse untrusted = fetch(*transfers, request);
  EXPECT_EQ(untrusted.end.failure, TransferFailure::kTls);
  EXPECT_THAT(untrusted.end.message, ::testing::HasSubstr("certificate is not trusted"));
  EXPECT_EQ(untrusted.end.message.find('\n'), std::string::npos);
  EXPECT_EQ(untrusted.head.status, 0);

  setenv("SSL_CERT_FILE", peer.certificate().c_str(), 1);
  const WholeResponse trusted = fetch(*transfers, request);
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(trusted.end.ok()) << trusted.end.message;
  EXPECT_EQ(trusted.body, "hello");
}

// A server that waits for the rest of what it takes for a request.
TEST(HttpTransfersTls, AServerWithoutTlsIsSuspected) {
  if (!HttpTransfers::available()) GTEST_SKIP() << "this build has no libcurl";
  ScriptedPeer plain([](const auto&, const auto& wire) { wire.pause(0.5); });
  const auto transfers = HttpTransfers::create().value();
  const WholeResponse response =
      fetch(*transfers,
            {.server = {.tls = true, .host = "127.0.0.1", .port = std::to_string(plain.port())},
             .path = "/",
             .total_seconds = 0.1});
  // OpenSSL waits for more, GnuTLS says what it saw.
  EXPECT_FALSE(response.end.ok());
  EXPECT_TRUE(response.end.message.starts_with("no TLS connection")) << response.end.message;
}

}  // namespace
}  // namespace hearth::testing
