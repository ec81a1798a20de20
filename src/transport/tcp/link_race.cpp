#include "transport/tcp/link_race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::tcp {
namespace {

/// Many links that are all slow decide nothing in this time, and a job needs its connections.
constexpr std::chrono::milliseconds longest_race{2000};

/// The handlers of its streams own it.
class Runner : public std::enable_shared_from_this<Runner> {
 public:
  Runner(Dial dial, LinkRace race)
      : dial_(std::move(dial)), race_(std::move(race)), streams_(race_.addresses.size()) {
    failures_.resize(streams_.size());
  }

  std::vector<PendingHandshake> start(asio::io_context& io) {
    Dial dial = dial_;
    dial.limit = race_.probes ? std::min(dial_.limit, longest_race) : dial_.limit;
    for (std::size_t index = 0; index < streams_.size(); ++index) {
      dial.endpoint = race_.addresses[index];
      streams_[index] = connect(
          io, dial,
          [self = shared_from_this(), index](const std::exception_ptr& why) {
            self->drop(index, why);
          },
          [self = shared_from_this()](Exchange& connected) { self->measure(connected); });
    }
    return streams_;
  }

 private:
  void measure(Exchange& connected) {
    wire::Hello hello = dial_.hello;
    hello.set_measures(true);
    connected.write(wire::encode_frame(hello), [self = shared_from_this()](Exchange& stream) {
      stream.read([self](Exchange& answered) { self->probe(answered); });
    });
  }

  void probe(Exchange& answered) {
    const wire::Welcome welcome = wire::decode_answer(answered.kind(), answered.payload());
    answered.set_introduced();
    if (is_decided_) {
      return answered.abandon();
    }
    if (welcome.node() != race_.to.value) {
      throw ProtocolError(fmt::format("node {} answers there", welcome.node()));
    }
    if (!race_.probes) {
      return take(answered);
    }
    answered.write(wire::probe_frame(), [self = shared_from_this()](Exchange& probed) {
      probed.read([self](Exchange& first) {
        wire::decode_answer(first.kind(), first.payload());
        self->take(first);
      });
    });
  }

  /// A stream on which no answer has come yet ends when it comes: until then the other side would
  /// take its end for that of a foreign process.
  void take(Exchange& first) {
    is_decided_ = true;
    for (const PendingHandshake& stream : streams_) {
      const auto other = stream.lock();
      if (other && other.get() != &first && other->is_introduced()) {
        other->abandon();
      }
    }
    first.restart(dial_.limit);
    first.on_failure([finished = race_.finished](Exchange& self, const std::exception_ptr& why) {
      self.release();  // ends the stream
      finished({why, {}, std::nullopt});
    });
    greet(first, dial_.hello, race_.finished);
  }

  void drop(std::size_t index, const std::exception_ptr& why) {
    failures_[index] = why;
    if (!is_decided_ && std::find(failures_.begin(), failures_.end(), nullptr) == failures_.end()) {
      race_.undecided(failures_.front());
    }
  }

  const Dial dial_;
  const LinkRace race_;
  bool is_decided_ = false;
  std::vector<std::exception_ptr> failures_;  ///< of each stream that carries no probe
  std::vector<PendingHandshake> streams_;
};

}  // namespace

std::vector<PendingHandshake> run_race(asio::io_context& io, const Dial& dial,
                                       const LinkRace& race) {
  return std::make_shared<Runner>(dial, race)->start(io);
}

}  // namespace syncopate::tcp
