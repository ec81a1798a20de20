#include "transport/mpi/receiver.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::mpi {
namespace {

/// The bytes of an unfinished message that have left; empty for another message.
std::optional<std::uint64_t> sent_of(const std::vector<Unfinished>& unfinished,
                                     std::uint32_t transfer) {
  const auto found = std::find_if(unfinished.begin(), unfinished.end(),
                                  [&](const auto& each) { return each.transfer == transfer; });
  return found == unfinished.end() ? std::nullopt : std::optional(found->sent);
}

}  // namespace

void Receiver::arrived(const PacketHead& head, std::span<const std::byte> payload) {
  line_.push_back({head, {payload.begin(), payload.end()}});
}

bool Receiver::work() {
  bool moved = false;
  while (true) {
    if (coming_ && !go_on()) {
      return moved;
    }
    if (line_.empty() || !mailbox_.may_read(peer_)) {
      return moved;
    }
    const Packet packet = std::move(line_.front());
    line_.pop_front();
    take(packet);
    moved = true;
  }
}

void Receiver::take(const Packet& packet) {
  if (packet.head.kind == PacketKind::large) {
    return begin(packet.head);
  }
  mail::Arrival arrival = mailbox_.begin(peer_, Tag{packet.head.tag}, packet.payload.size());
  const std::span<std::byte> buffer = mailbox_.borrow(arrival);
  std::copy_n(packet.payload.begin(), std::min(buffer.size(), packet.payload.size()),
              buffer.begin());
  mailbox_.give_back(arrival, packet.payload.size());
  taken_ += packet_head_bytes + packet.payload.size();
  if (taken_ >= small_window / 4) {
    reply(PacketKind::credit, 0, std::exchange(taken_, 0));
  }
}

void Receiver::begin(const PacketHead& head) {
  coming_.emplace(Coming{.arrival = mailbox_.begin(peer_, Tag{head.tag}, head.bytes),
                         .transfer = head.transfer});
  coming_->buffer = mailbox_.borrow(coming_->arrival);
  if (ended_ && sent_of(*ended_, head.transfer)) {
    coming_->abandoned = true;
    line_.clear();
  }
}

/// Makes progress with the arriving large message; returns true once it has ended.
bool Receiver::go_on() {
  Coming& coming = *coming_;
  const bool wanted = !coming.abandoned && mailbox_.is_wanted(coming.arrival);
  if (wanted) {
    ask_for_more(coming);
  }
  const bool complete = coming.received == coming.arrival.bytes;
  if (!coming.pieces.empty() || (wanted && !complete)) {
    return false;
  }
  Coming ended = std::move(coming);
  coming_.reset();
  if (!complete && !ended.abandoned) {
    reply(PacketKind::drop, ended.transfer, 0);
  }
  mailbox_.give_back(ended.arrival, ended.received);
  engine_.changed().notify_all();
  return true;
}

void Receiver::ask_for_more(Coming& coming) {
  const std::uint64_t before = coming.granted;
  while (coming.granted < coming.arrival.bytes && coming.pieces.size() < pieces_ahead) {
    receive_piece(coming);
  }
  if (coming.granted > before) {
    reply(PacketKind::grant, coming.transfer, coming.granted);
  }
}

void Receiver::receive_piece(Coming& coming) {
  const std::uint64_t begin = coming.granted;
  const std::uint64_t size = std::min<std::uint64_t>(piece_bytes, coming.arrival.bytes - begin);
  coming.granted += size;
  coming.pieces.push_back(
      {begin, size,
       engine_.receive_piece(
           there_.rank, coming.transfer, coming.buffer.subspan(begin, size),
           [this, begin](const Calls::Done& done) { piece_ended(begin, done); })});
}

void Receiver::piece_ended(std::uint64_t begin, const Calls::Done& done) {
  auto& pieces = coming_->pieces;
  const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                  [&](const auto& each) { return each.begin == begin; });
  if (!done.cancelled) {
    coming_->received += piece->size;
  } else {
    withdrawn_.push_back({coming_->transfer, piece->begin, piece->size});
  }
  pieces.erase(piece);
  if (ended_) {
    drain(*ended_);
  }
}

void Receiver::end(const std::vector<Unfinished>& unfinished) {
  ended_ = unfinished;
  drain(unfinished);
  if (!coming_) {
    return;
  }
  const auto sent = sent_of(unfinished, coming_->transfer);
  if (sent && *sent < coming_->arrival.bytes) {
    coming_->abandoned = true;
    line_.clear();
    withdraw(*coming_, *sent);
  }
}

void Receiver::abandon() {
  line_.clear();
  if (coming_ && !std::exchange(coming_->abandoned, true) && !ended_) {
    withdraw(*coming_, 0);
  }
}

void Receiver::withdraw(Coming& coming, std::uint64_t from) {
  for (const Coming::Piece& piece : coming.pieces) {
    if (piece.begin >= from) {
      engine_.cancel(piece.operation);
    }
  }
}

/// Receives pieces that had left when their receives were cancelled, so that MPI returns the peer's
/// buffer.
void Receiver::drain(const std::vector<Unfinished>& unfinished) {
  for (const Withdrawn& piece : std::exchange(withdrawn_, {})) {
    const auto sent = sent_of(unfinished, piece.transfer);
    if (!sent || piece.begin < *sent) {
      const auto scratch = std::make_shared<std::vector<std::byte>>(piece.size);
      engine_.receive_piece(there_.rank, piece.transfer, *scratch,
                            [scratch](const Calls::Done&) {});
    }
  }
}

void Receiver::reply(PacketKind kind, std::uint32_t transfer, std::uint64_t bytes) {
  engine_.send(there_, {.kind = kind,
                        .from_slot = here_.slot,
                        .to_slot = there_.slot,
                        .transfer = transfer,
                        .bytes = bytes});
}

}  // namespace syncopate::mpi
