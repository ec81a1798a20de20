// Goal:   packets of the MPI transport have the bytes that `packet.hpp` documents.
// Method: a packet and a goodbye with every field set are compared with their expected bytes;
//         truncated bytes must be refused.

#include <gtest/gtest.h>

#include "base/errors.hpp"
#include "transport/mpi/packet.hpp"

namespace syncopate::mpi {
namespace {

std::vector<std::byte> bytes_of(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

TEST(MpiPacket, AHeadHasTwentyFourBytes) {
  const PacketHead head{.kind = PacketKind::large,
                        .from_slot = 0x0102,
                        .to_slot = 3,
                        .tag = 0x04050607,
                        .transfer = 8,
                        .bytes = 1ULL << 40};
  const auto packet = encode(head, bytes_of({77}));
  EXPECT_EQ(packet,
            bytes_of({4, 0, 2, 1, 3, 0, 0, 0, 7, 6, 5, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 77}));
  EXPECT_EQ(decode_packet_head(packet), head);
  EXPECT_THROW(decode_packet_head(std::span(packet).first(packet_head_bytes - 1)), ProtocolError);
}

TEST(MpiPacket, AGoodbyeListsWhatIsUnfinished) {
  const std::vector<Unfinished> unfinished = {{.sent = 5, .transfer = 6}, {.sent = 256}};
  const auto payload = encode(unfinished);
  EXPECT_EQ(payload, bytes_of({5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,  //
                               0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(decode_unfinished(payload), unfinished);
  EXPECT_EQ(decode_unfinished({}), std::vector<Unfinished>());
  EXPECT_THROW(decode_unfinished(std::span(payload).first(15)), ProtocolError);
}

}  // namespace
}  // namespace syncopate::mpi
