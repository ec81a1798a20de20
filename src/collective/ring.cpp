#include "collective/ring.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "collective/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// Long enough to hide a wake-up behind its transfer, short enough to stay in the second-level cache.
constexpr std::size_t segment_values = 128 * 1024;

/// One allreduce under way on one rank: of `values` times `factor`. Every value is scaled where it is
/// touched anyway, just before it is sent or added to, which saves a pass over memory.
class RingPass {
 public:
  RingPass(Group& group, std::span<float> values, float factor)
      : group_(group),
        values_(values),
        factor_(factor),
        left_(group.node(group.neighbour(group.size() - 1))),
        right_(group.node(group.neighbour(1))) {}

  void run() {
    send_chunk(group_.rank().value);
    for (std::uint32_t step = 1; step < group_.size(); ++step) {
      reduce_chunk(chunk_behind(step),
                   step + 1 < group_.size() ? tags::reduce_scatter : tags::ring_allgather);
    }
    // Gathering writes over what reducing sent. The sums on their way are another matter: to wait
    // for them here would be to wait for a neighbour that waits in the same place.
    finish(reducing_);
    gather();
    finish(gathering_);
  }

 private:
  using Segments = std::vector<std::span<float>>;
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  /// The chunk that began `steps` ranks behind this one.
  std::uint32_t chunk_behind(std::uint32_t steps) const {
    return group_.neighbour(group_.size() - steps).value;
  }

  Segments segments_of(std::uint32_t chunk) const {
    const std::size_t begin = values_.size() * chunk / group_.size();
    const std::size_t end = values_.size() * (chunk + 1) / group_.size();
    Segments segments;
    for (std::size_t at = begin; at < end; at += segment_values) {
      segments.push_back(values_.subspan(at, std::min(segment_values, end - at)));
    }
    return segments;
  }

  void pass_on(std::span<float> segment, Tag tag) {
    auto& sends = tag == tags::reduce_scatter ? reducing_ : gathering_;
    sends.push_back(group_.transport().start_send(right_, group_.tag(tag), std::as_bytes(segment)));
  }

  void send_chunk(std::uint32_t chunk) {
    for (const auto segment : segments_of(chunk)) {
      if (factor_ != 1) {
        scale(segment, factor_);
      }
      pass_on(segment, tags::reduce_scatter);
    }
  }

  /// Adds the arriving sums of `chunk` to this rank's own and passes them on under `next`. Two
  /// receives are posted at any time: one fills while the other is added.
  void reduce_chunk(std::uint32_t chunk, Tag next) {
    const Segments segments = segments_of(chunk);
    const std::span<float> scratch = group_.scratch(2 * segment_values);
    const auto place = [&](std::size_t i) {
      return scratch.subspan(i % 2 * segment_values, segments[i].size());
    };
    std::deque<std::unique_ptr<Transfer>> arriving;
    const auto expect = [&](std::size_t i) {
      if (i < segments.size()) {
        arriving.push_back(group_.transport().start_receive(left_, group_.tag(tags::reduce_scatter),
                                                            std::as_writable_bytes(place(i))));
      }
    };
    expect(0);
    expect(1);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      group_.await(*arriving.front(), group_.deadline());
      arriving.pop_front();
      factor_ == 1 ? add(segments[i], place(i)) : scale_and_add(segments[i], factor_, place(i));
      pass_on(segments[i], next);
      expect(i + 2);
    }
  }

  /// Receives the sums of all other chunks into their places, and passes on all but the last.
  void gather() {
    struct Arrival {
      std::span<float> segment;
      bool goes_on;
      std::unique_ptr<Transfer> transfer;
    };
    std::vector<Arrival> arrivals;
    for (std::uint32_t step = 0; step + 1 < group_.size(); ++step) {
      for (const auto segment : segments_of(chunk_behind(step))) {
        arrivals.push_back(
            {segment, step + 2 < group_.size(),
             group_.transport().start_receive(left_, group_.tag(tags::ring_allgather),
                                              std::as_writable_bytes(segment))});
      }
    }
    for (const auto& arrival : arrivals) {
      group_.await(*arrival.transfer, group_.deadline());
      if (arrival.goes_on) {
        pass_on(arrival.segment, tags::ring_allgather);
      }
    }
  }

  void finish(const Transfers& sends) {
    for (const auto& send : sends) {
      send->wait(group_.deadline());
    }
  }

  Group& group_;
  std::span<float> values_;
  float factor_;
  NodeId left_;
  NodeId right_;
  Transfers reducing_;
  Transfers gathering_;
};

}  // namespace

void ring_allreduce(Group& group, std::span<float> values) {
  if (group.size() > 1) {
    RingPass(group, values, 1).run();
  }
}

void weighted_mean(Group& group, std::span<float> values, double weight, double total_weight) {
  if (weight == 0) {
    std::fill(values.begin(), values.end(), 0.0F);
  }
  if (group.size() > 1) {
    const double factor = weight == 0 ? 1 : weight / total_weight;
    RingPass(group, values, static_cast<float>(factor)).run();
  }
}

}  // namespace syncopate
