// Goal:   a node that may listen at certain ports only takes a free one of them.
// Method: a port that the system has just given is in use for as long as the test listens there.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/errors.hpp"
#include "transport/tcp/sockets.hpp"

namespace syncopate::contract {
namespace {

struct TcpPorts : testing::Test {
  static constexpr std::uint16_t spare = 50;  // others of the machine may use some of them

  TcpPorts() {
    while (last() < taken()) {  // past the last port
      acceptor = tcp::open_listener(io, any);
    }
  }

  std::uint16_t taken() const { return acceptor.local_endpoint().port(); }
  std::uint16_t last() const { return static_cast<std::uint16_t>(taken() + spare); }

  asio::io_context io;
  const tcp::Endpoint any = tcp::parse_address("127.0.0.1:0");
  tcp::Acceptor acceptor = tcp::open_listener(io, any);
};

TEST_F(TcpPorts, APortInUseIsPassedOver) {
  const auto other = tcp::open_listener(io, any, {taken(), last()});
  EXPECT_THAT(other.local_endpoint().port(),
              testing::AllOf(testing::Gt(taken()), testing::Le(last())));
}

TEST_F(TcpPorts, AllInUseIsAnError) {
  try {
    tcp::open_listener(io, any, {taken(), taken()});
    ADD_FAILURE() << "two nodes listen at one port";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format("expected a free port from {0} to {0} "
                                                             "at 127.0.0.1, found all in use",
                                                             taken())));
  }
}

TEST_F(TcpPorts, WithoutARangeTheSystemChooses) {
  EXPECT_THAT(tcp::open_listener(io, any, {}).local_endpoint().port(), testing::Ge(1));
}

}  // namespace
}  // namespace syncopate::contract
