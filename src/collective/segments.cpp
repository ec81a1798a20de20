#include "collective/segments.hpp"

#include <algorithm>

#include "kernels/reduce.hpp"
#include "transport/tags.hpp"

namespace syncopate {

/// The number of receives that a rank keeps posted. A message without a posted receive waits in
/// fresh memory, whose first touch is slow.
constexpr std::size_t segments_ahead = 4;

std::vector<std::span<float>> segments_of(std::span<float> values) {
  std::vector<std::span<float>> segments;
  for (std::size_t at = 0; at < values.size(); at += segment_values) {
    segments.push_back(values.subspan(at, std::min(segment_values, values.size() - at)));
  }
  return segments;
}

void Sends::begin(Rank to, Tag tag, std::span<float> values, float factor) {
  for (const auto segment : segments_of(values)) {
    scale(segment, factor);
    transfers_.push_back(
        group_.transport().start_send(group_.node(to), group_.tag(tag), std::as_bytes(segment)));
  }
}

void Sends::finish() {
  for (const auto& transfer : transfers_) {
    transfer->wait(group_.deadline());
  }
  transfers_.clear();
}

void Receives::begin(Rank from, Tag tag, std::span<float> into) {
  std::vector<Arrival>& arrivals = arrivals_.emplace_back();
  for (const auto segment : segments_of(into)) {
    arrivals.push_back({from, segment,
                        group_.transport().start_receive(group_.node(from), group_.tag(tag),
                                                         std::as_writable_bytes(segment))});
  }
}

void Receives::finish_next(const std::function<void(std::span<float>)>& arrived) {
  for (const Arrival& arrival : arrivals_.front()) {
    group_.await(*arrival.transfer, arrival.from);
    if (arrived) {
      arrived(arrival.segment);
    }
  }
  arrivals_.pop_front();
}

void receive_and_add(Group& group, Rank from, std::span<float> into, float factor,
                     const AtSegment& at) {
  const auto segments = segments_of(into);
  const std::size_t longest = std::min(segment_values, into.size());
  const std::span<float> scratch = group.scratch(segments_ahead * longest);
  const auto buffer = [&](std::size_t i) {
    return scratch.subspan(i % segments_ahead * longest, segments[i].size());
  };
  std::deque<std::unique_ptr<Transfer>> arriving;
  const auto expect = [&](std::size_t i) {
    if (i < segments.size()) {
      arriving.push_back(group.transport().start_receive(group.node(from), group.tag(tags::parts),
                                                         std::as_writable_bytes(buffer(i))));
    }
  };
  for (std::size_t i = 0; i < segments_ahead; ++i) {
    expect(i);
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    group.await(*arriving.front(), from);
    arriving.pop_front();
    if (at.before) {
      at.before(i);
    }
    factor == 1 ? add(segments[i], buffer(i)) : scale_and_add(segments[i], factor, buffer(i));
    if (at.after) {
      at.after(segments[i]);
    }
    expect(i + segments_ahead);
  }
}

}  // namespace syncopate
