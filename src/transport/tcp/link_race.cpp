#include "transport/tcp/link_race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::tcp {
namespace {

/// The handlers of its streams own it.
class LinkRace : public std::enable_shared_from_this<LinkRace> {
 public:
  LinkRace(wire::Hello hello, NodeId to, std::size_t streams, Finished finished)
      : hello_(std::move(hello)), to_(to), finished_(std::move(finished)), errors_(streams) {}

  std::vector<PendingHandshake> start(asio::io_context& io, Dial dial, const Endpoints& addresses) {
    for (std::size_t index = 0; index < addresses.size(); ++index) {
      dial.endpoint = addresses[index];
      streams_.push_back(connect(
          io, dial,
          [self = shared_from_this(), index](const std::exception_ptr& why) {
            self->drop(index, why);
          },
          [self = shared_from_this()](Exchange& connected) { self->measure(connected); }));
    }
    return streams_;
  }

 private:
  void measure(Exchange& connected) {
    wire::Hello hello = hello_;
    hello.set_measures(true);
    const auto arrived = [self = shared_from_this()](Exchange& stream) { self->take(stream); };
    const auto welcomed = [self = shared_from_this(), arrived](Exchange& stream) {
      const wire::Welcome welcome = wire::decode_answer(stream.kind(), stream.payload());
      if (welcome.node() != self->to_.value) {
        throw ProtocolError(fmt::format("node {} answers there", welcome.node()));
      }
      stream.write(wire::probe_frame(), [arrived](Exchange& probed) { probed.read(arrived); });
    };
    connected.write(wire::encode_frame(hello),
                    [welcomed](Exchange& stream) { stream.read(welcomed); });
  }

  void take(Exchange& first) {
    wire::decode_answer(first.kind(), first.payload());
    for (const PendingHandshake& stream : streams_) {
      if (const auto other = stream.lock(); other && other.get() != &first) {
        other->abandon();
      }
    }
    first.on_failure([finished = finished_](Exchange& self, const std::exception_ptr& why) {
      self.release();  // ends the stream
      finished({why, {}, std::nullopt});
    });
    greet(first, hello_, finished_);
  }

  void drop(std::size_t index, const std::exception_ptr& why) {
    errors_[index] = why;
    if (std::find(errors_.begin(), errors_.end(), nullptr) == errors_.end()) {
      finished_({errors_.front(), {}, std::nullopt});
    }
  }

  const wire::Hello hello_;
  const NodeId to_;
  const Finished finished_;
  std::vector<std::exception_ptr> errors_;  ///< of each stream that carries no probe
  std::vector<PendingHandshake> streams_;
};

}  // namespace

std::vector<PendingHandshake> dial_fastest(asio::io_context& io, const Dial& dial,
                                           const Endpoints& addresses, NodeId to,
                                           const Finished& finished) {
  return std::make_shared<LinkRace>(dial.hello, to, addresses.size(), finished)
      ->start(io, dial, addresses);
}

}  // namespace syncopate::tcp
