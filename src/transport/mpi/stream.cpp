#include "transport/mpi/stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate::mpi {

void Stream::open() {
  open_ = true;
  sender_.open();
  sender_.work();
}

void Stream::arrived(const PacketHead& head, std::span<const std::byte> payload) {
  switch (head.kind) {
    case PacketKind::small:
    case PacketKind::large:
      if (!lost_by_) {
        receiver_.arrived(head, payload);
      }
      return;
    case PacketKind::grant: return sender_.granted(head.transfer, head.bytes);
    case PacketKind::drop: return sender_.dropped(head.transfer);
    case PacketKind::credit: return sender_.credited(head.bytes);
    case PacketKind::goodbye: return receive_goodbye(payload);
    case PacketKind::hello:
    case PacketKind::welcome:
    case PacketKind::refused: break;
  }
  throw ProtocolError(fmt::format("node {} sent a packet of kind {}", ends_.peer.value,
                                  static_cast<unsigned>(head.kind)));
}

bool Stream::work() {
  bool moved = sender_.work();
  moved |= receiver_.work();
  if (received_goodbye_ && !lost_by_ && receiver_.is_drained()) {
    lose("it closed the connection");
    moved = true;
  }
  return moved;
}

void Stream::finish() {
  send_goodbye();
  sender_.break_off(loss("this node's transport was closed"));
}

void Stream::lose(const std::string& reason) {
  lose(loss(reason));
}

void Stream::lose(const std::exception_ptr& why) {
  if (lost_by_) {
    return;
  }
  lost_by_ = why;
  send_goodbye();
  sender_.break_off(why);
  receiver_.abandon();
  mailbox_.lose(ends_.peer, why);
  receiver_.work();
  engine_.changed().notify_all();
}

void Stream::send_goodbye() {
  if (open_ && !std::exchange(sent_goodbye_, true)) {
    engine_.send(ends_.there, sender_.head(PacketKind::goodbye), encode(sender_.unfinished()));
  }
}

/// The loss of the peer shows once all earlier messages have been received.
void Stream::receive_goodbye(std::span<const std::byte> payload) {
  received_goodbye_ = true;
  send_goodbye();
  sender_.break_off(loss("it closed the connection"));
  receiver_.end(decode_unfinished(payload));
  engine_.changed().notify_all();
}

std::exception_ptr Stream::loss(const std::string& reason) const {
  return std::make_exception_ptr(PeerLost(
      ends_.peer,
      fmt::format("node {} ({}) is lost: {}", ends_.peer.value, to_string(ends_.there), reason)));
}

}  // namespace syncopate::mpi
