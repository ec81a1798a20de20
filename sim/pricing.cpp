#include "sim/pricing.hpp"

#include <algorithm>
#include <cmath>

#include "sim/at_node.hpp"

namespace syncopate::sim {
namespace {

Duration time_for(std::size_t bytes, double bandwidth) {
  return Duration(std::llround(static_cast<double>(bytes) / bandwidth * 1e9));
}

}  // namespace

Pricing::Pricing(const NetworkProfile& profile, std::uint64_t seed)
    : profile_(profile),
      card_bandwidth_(profile.card_bandwidth.value_or(profile.link.bandwidth)),
      random_(Random(seed).fork("latency")) {}

void Pricing::set_link(NodeId from, NodeId to, const LinkProfile& link_profile) {
  link(from, to).profile = link_profile;
}

Passage Pricing::depart(TimePoint now, NodeId from, NodeId to, std::size_t bytes) {
  TimePoint& card_free = card(from).outward_free;
  Link& way = link(from, to);
  const TimePoint on_card = std::max(now, card_free);
  card_free = on_card + time_for(bytes, card_bandwidth_);
  const TimePoint on_link = std::max(on_card, way.free);
  way.free = std::max(on_link + time_for(bytes, way.profile.bandwidth), card_free);

  const Duration latency = draw_latency(way.profile);
  const TimePoint first_byte = std::max(on_link + latency, way.last_byte);
  way.last_byte = std::max(way.free + latency, first_byte);
  return {card_free, first_byte, way.last_byte};
}

TimePoint Pricing::arrive(const Passage& passage, NodeId to, std::size_t bytes) {
  TimePoint& card_free = card(to).inward_free;
  card_free = std::max(passage.first_byte, card_free) + time_for(bytes, card_bandwidth_);
  return std::max(card_free, passage.last_byte);
}

Duration Pricing::latency(NodeId from, NodeId to) {
  return link(from, to).profile.latency;
}

TimePoint Pricing::sent_by(NodeId node) {
  return card(node).outward_free;
}

Pricing::Card& Pricing::card(NodeId node) {
  return at_node(cards_, node, Card{});
}

Pricing::Link& Pricing::link(NodeId from, NodeId to) {
  return at_node(at_node(links_, from, {}), to, Link{profile_.link, {}, {}});
}

Duration Pricing::draw_latency(const LinkProfile& link) {
  if (profile_.jitter == 0) {
    return link.latency;
  }
  const double latency = static_cast<double>(link.latency.count());
  return Duration(std::llround(latency * (1 + profile_.jitter * random_.uniform())));
}

}  // namespace syncopate::sim
