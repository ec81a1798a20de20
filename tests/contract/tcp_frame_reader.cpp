// Goal:   the reader delivers whole messages wherever the stream is cut; damage ends the stream.
// Method: a stream of messages of random sizes (by seed) is fed in pieces of random length, from
//         single bytes to whole reads; half of the receives are posted before the bytes arrive,
//         half after.

#include <gmock/gmock.h>

#include <deque>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/contract/payload.hpp"
#include "tests/contract/tcp_cluster.hpp"
#include "tests/support/log_capture.hpp"
#include "transport/tags.hpp"
#include "transport/tcp/frame_reader.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::contract {
namespace {

constexpr NodeId peer{1};
constexpr Tag data = tags::allgather;

/// Feeds `bytes` to `reader` as a socket does that has at most `piece()` bytes at each read.
void feed(tcp::FrameReader& reader, std::span<const std::byte> bytes,
          const std::function<std::size_t()>& piece) {
  while (!bytes.empty()) {
    const auto space = reader.space();
    const auto available = asio::buffer(bytes.data(), std::min(piece(), bytes.size()));
    const std::size_t taken = asio::buffer_copy(space, available);
    reader.received(taken);
    bytes = bytes.subspan(taken);
  }
}

void append(Bytes& stream, std::span<const std::byte> bytes) {
  stream.insert(stream.end(), bytes.begin(), bytes.end());
}

struct TcpFrameReader : testing::TestWithParam<std::uint64_t> {
  mail::Mailbox mailbox{std::size_t{1} << 40, [](NodeId) {}};
  tcp::FrameReader reader{peer, mailbox, {.self = NodeId{0}, .message_bytes = 1'000'000}};
};

TEST_P(TcpFrameReader, FindsTheMessagesWhereverTheStreamIsCut) {
  const std::uint64_t seed = GetParam();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  constexpr std::size_t count = 200;
  Bytes stream;
  std::vector<Bytes> sent;
  std::deque<Bytes> buffers;
  std::vector<std::unique_ptr<Transfer>> receives;
  for (std::size_t number = 0; number < count; ++number) {
    sent.push_back(pattern(random.below(random.below(20) == 0 ? 700'000 : 300), number));
    append(stream, wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value,
                                                  sent.back().size()}));
    append(stream, sent.back());
    if (number < count / 2) {
      buffers.emplace_back(sent.back().size());
      receives.push_back(mailbox.start_receive(peer, data, buffers.back()));
    }
  }
  feed(reader, stream, [&] {
    constexpr std::size_t longest[] = {1, 30, 5'000, 300'000};
    return 1 + random.below(longest[random.below(4)]);
  });
  EXPECT_FALSE(reader.is_filling_borrowed_buffer());
  for (std::size_t number = 0; number < count / 2; ++number) {
    receives[number]->wait(far_away());
    EXPECT_TRUE(buffers[number] == sent[number]) << "message " << number;
  }
  for (std::size_t number = count / 2; number < count; ++number) {
    EXPECT_TRUE(mailbox.try_receive(peer, data, far_away())->payload == sent[number])
        << "message " << number;
  }
}

TEST_P(TcpFrameReader, DamagedHeadersEndTheStream) {
  const std::uint64_t seed = GetParam();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  Bytes stream;
  append(stream, wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value, 3}));
  append(stream, pattern(3, 1));
  auto damaged = wire::encode(wire::FrameHeader{wire::FrameKind::message, data.value, 3});
  // Damages any byte of the header except those of tag and length: each value of these is valid.
  const std::size_t fixed[] = {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15};
  damaged.at(fixed[random.below(12)]) ^= static_cast<std::byte>(1 + random.below(255));
  append(stream, damaged);
  EXPECT_THROW(feed(reader, stream, [&] { return 1 + random.below(40); }), ProtocolError);
  EXPECT_EQ(mailbox.try_receive(peer, data, far_away())->payload, pattern(3, 1));
}

struct TcpFrameLimits : testing::Test {
  void read(Tag tag, const Bytes& payload) {
    Bytes stream;
    append(stream,
           wire::encode(wire::FrameHeader{wire::FrameKind::message, tag.value, payload.size()}));
    append(stream, payload);
    feed(reader, stream, [] { return std::size_t{50'000}; });
  }

  /// Feeds the header of a message without its payload. Returns the reader's error, or "taken".
  std::string refusal_of(Tag tag, std::uint64_t bytes) {
    tcp::FrameReader reader_of_one{peer, mailbox, limits};
    try {
      feed(reader_of_one,
           wire::encode(wire::FrameHeader{wire::FrameKind::message, tag.value, bytes}),
           [] { return std::size_t{50'000}; });
    } catch (const ProtocolError& error) {
      return error.what();
    }
    return "taken";
  }

  mail::Mailbox mailbox{100'000, [](NodeId) {}};
  PayloadLimits limits{.self = NodeId{0}, .message_bytes = 100'000'000};
  tcp::FrameReader reader{peer, mailbox, limits};
};

TEST_F(TcpFrameLimits, MessagesUnderUnknownTagsAreDroppedAndOthersComeThrough) {
  LogCapture log;
  for (const Tag unknown : {Tag{0}, Tag{3}, Tag{100}, Tag{2'000'000'000}, tags::from_coordinator}) {
    read(unknown, pattern(200'000, 1));
    EXPECT_TRUE(mailbox.may_read(peer)) << "nothing is kept under tag " << unknown.value;
  }
  read(data, pattern(10, 2));
  EXPECT_EQ(mailbox.try_receive(peer, data, far_away())->payload, pattern(10, 2));
  EXPECT_EQ(log.text(), "dropped a message of node 1 under tag 0, which this node does not take\n");
}

TEST_F(TcpFrameLimits, AnnouncedSizesAreBoundedByTag) {
  EXPECT_EQ(refusal_of(tags::to_coordinator, (16 << 20) + 1),
            "expected a message of at most 16777216 bytes under tag 1, found 16777217");
  EXPECT_EQ(refusal_of(tags::server_request, (1 << 20) + 1),
            "expected a message of at most 1048576 bytes under tag 24, found 1048577");
  EXPECT_EQ(refusal_of(data, 100'000'001),
            "expected a payload of at most 100000000 bytes, found 100000001");
  EXPECT_EQ(refusal_of(data, 100'000'000), "taken");
}

INSTANTIATE_TEST_SUITE_P(Seeds, TcpFrameReader, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace syncopate::contract
