// Goal:   of a node's addresses the one whose stream carries a probe first is used; addresses that
//         do not answer, or at which another node answers, are passed over.
// Method: real nodes in threads of their own; addresses that accept nothing, or where no process
//         listens.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "base/errors.hpp"
#include "tests/contract/raw_peer.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"
#include "transport/tcp/interfaces.hpp"
#include "transport/tcp/link_race.hpp"

namespace syncopate::contract {
namespace {

using testing::HasSubstr;

struct TcpLinks : testing::TestWithParam<tcp::Network> {
  TcpLinks() { ::listen(silent.get(), 1); }

  static constexpr std::chrono::milliseconds long_time = std::chrono::minutes(2);

  /// The number that node 0 has given, or the error.
  std::string greet(const std::vector<std::string>& addresses,
                    std::chrono::milliseconds limit = long_time, bool probes = true) {
    tcp::Endpoints endpoints;
    for (const std::string& address : addresses) {
      endpoints.push_back(tcp::parse_address(address));
    }
    wire::Hello hello;
    hello.set_token(token);
    hello.set_address("127.0.0.1:1");
    std::string outcome = "it never ends";
    const tcp::Dial dial{endpoints.front(), hello, tls.get(), limit};
    const auto streams =
        tcp::run_race(io, dial,
                      {endpoints, coordinator_node, probes,
                       [&](const tcp::HandshakeResult& result) {
                         outcome = result.error ? "after a Hello: " + text_of(result.error)
                                                : fmt::format("{}", result.welcome.you());
                       },
                       [&](const std::exception_ptr& why) { outcome = text_of(why); }});
    EXPECT_EQ(streams.size(), addresses.size());
    io.run();
    io.restart();
    return outcome;
  }

  static std::string text_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& exception) {
      return exception.what();
    }
  }

  LogCapture log;
  asio::io_context io;
  const std::unique_ptr<tcp::Tls> tls =
      GetParam() == tcp::Network::encrypted ? std::make_unique<tcp::Tls>(token) : nullptr;
  const std::unique_ptr<TcpTransport> coordinator =
      make_coordinator({}, /*shared_memory=*/false, GetParam());
  const Descriptor silent = bound_socket();  ///< the system accepts, and no process answers
  const Descriptor closed = bound_socket();
};

TEST_P(TcpLinks, TheFirstStreamThatCarriesAProbeIsUsed) {
  EXPECT_EQ(greet({address_of(silent), coordinator->address()}), "1");
  EXPECT_EQ(greet({coordinator->address(), address_of(closed)}), "2");
  EXPECT_EQ(greet({coordinator->address(), coordinator->address()}), "3")
      << "one number for both streams";
  EXPECT_THAT(log.text(), testing::Not(HasSubstr("turned away"))) << "of the other stream";
}

TEST_P(TcpLinks, WithoutProbesTheFirstAnswerDecides) {
  EXPECT_EQ(greet({address_of(closed), coordinator->address()}, long_time, false), "1");
  const auto other = join_coordinator(coordinator->address(), token, false, GetParam());
  EXPECT_EQ(greet({other->address(), coordinator->address()}, long_time, false), "3");
  EXPECT_EQ(greet({other->address()}, long_time, false), "node 2 answers there");
}

TEST_P(TcpLinks, WhereNoneAnswersTheErrorIsThatOfTheFirstAddress) {
  const auto other = join_coordinator(coordinator->address(), token, false, GetParam());
  EXPECT_THAT(greet({address_of(closed), other->address()}), HasSubstr("refused"));
  EXPECT_EQ(greet({other->address(), address_of(closed)}), "node 1 answers there");
  EXPECT_THAT(greet({address_of(silent), address_of(closed)}, std::chrono::milliseconds(50)),
              HasSubstr("expected a handshake within 50 ms"));
}

TEST_P(TcpLinks, AnotherNodeOfTheJobIsPassedOver) {
  const auto other = join_coordinator(coordinator->address(), token, false, GetParam());
  EXPECT_EQ(greet({other->address(), coordinator->address()}), "2");
}

INSTANTIATE_TEST_SUITE_P(Networks, TcpLinks,
                         testing::Values(tcp::Network::loopback, tcp::Network::encrypted),
                         [](const auto& test) {
                           return test.param == tcp::Network::encrypted ? "encrypted" : "plain";
                         });

wire::Hello that_measures(const std::string& token_of_it) {
  wire::Hello hello;
  hello.set_token(token_of_it);
  hello.set_measures(true);
  return hello;
}

TEST(TcpProbes, AWrongTokenMeasuresNothing) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  EXPECT_THROW(RawPeer(coordinator->address()).greet(that_measures("another")), ConfigError);
  EXPECT_TRUE(log.wait_for("the job token is wrong"));
}

TEST(TcpProbes, AnotherFrameInItsPlaceIsRefused) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  RawPeer peer(coordinator->address());
  EXPECT_EQ(peer.greet(that_measures(token)).node(), 0);
  peer.write(wire::encode(wire::FrameHeader{wire::FrameKind::message, 1, 0}));
  EXPECT_THROW(peer.read_answer(), ConfigError);
  EXPECT_TRUE(log.wait_for("expected a frame of kind 1 in the handshake, found kind 4"));
}

TEST(TcpProbes, AStreamIsMeasuredOnce) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  RawPeer peer(coordinator->address());
  peer.greet(that_measures(token));
  EXPECT_THROW(peer.greet(that_measures(token)), ConfigError);
  EXPECT_TRUE(log.wait_for("expected one measurement of a stream, found another"));
}

TEST(TcpProbes, AStreamThatEndsAfterOneIsNoFault) {
  LogCapture log;
  const auto coordinator = make_coordinator();
  RawPeer peer(coordinator->address());
  peer.greet(that_measures(token));
  peer.write(wire::probe_frame());
  EXPECT_EQ(peer.read_answer().node(), 0);
  peer.finish_writing();
  peer.read_to_end();
  EXPECT_EQ(join_coordinator(coordinator->address())->self(), NodeId{1});
  EXPECT_THAT(log.text(), testing::Not(HasSubstr("turned away")));
}

TEST(TcpAddresses, SeveralAreOneText) {
  const std::string text = "10.0.0.1:9,[fd00::1]:9";
  const tcp::Endpoints both = tcp::parse_addresses(text, tcp::Network::encrypted);
  ASSERT_EQ(both.size(), 2);
  EXPECT_EQ(tcp::to_string(both[0]), "10.0.0.1:9");
  EXPECT_EQ(tcp::to_string(both[1]), "[fd00::1]:9");
  EXPECT_EQ(tcp::to_string(both), text);
  EXPECT_THROW(tcp::parse_addresses("10.0.0.1:9,", tcp::Network::encrypted), ConfigError);
  EXPECT_THROW(tcp::parse_addresses("127.0.0.1:9,10.0.0.1:9", tcp::Network::loopback), ConfigError);
  std::string many = text;
  for (int more = 0; more < 7; ++more) {
    many += ",10.0.0.1:9";
  }
  EXPECT_THROW(tcp::parse_addresses(many, tcp::Network::encrypted), ConfigError);
}

TEST(TcpAddresses, AnOwnAddressLeadsToThisHostAlone) {
  const auto parsed = [](const std::string& text) {
    return tcp::parse_addresses(text, tcp::Network::encrypted);
  };
  const tcp::Addresses own = tcp::own_addresses();
  EXPECT_THAT(own, testing::Contains(asio::ip::make_address("127.0.0.1")));
  EXPECT_EQ(tcp::leading_there(parsed("203.0.113.1:9,127.0.0.1:9,203.0.113.2:9"), own),
            parsed("203.0.113.1:9,203.0.113.2:9"));
  EXPECT_EQ(tcp::leading_there(parsed("127.0.0.1:9,203.0.113.2:9"), own), parsed("127.0.0.1:9"));
  EXPECT_EQ(tcp::leading_there(parsed("203.0.113.1:9"), own), parsed("203.0.113.1:9"));
}

TEST(TcpAddresses, OtherInterfacesListenAtTheSamePort) {
  asio::io_context io;
  auto first = tcp::open_listener(io, tcp::parse_address("127.0.0.1:0"));
  const tcp::Endpoint own = first.local_endpoint();
  for (const tcp::Acceptor& acceptor : tcp::on_all_interfaces(io, std::move(first))) {
    EXPECT_EQ(acceptor.local_endpoint().port(), own.port());
    EXPECT_EQ(acceptor.local_endpoint() == own, acceptor.local_endpoint().address().is_loopback());
  }
}

}  // namespace
}  // namespace syncopate::contract
