#include "sim/transfer_times.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::sim {
namespace {

Duration time_for(std::size_t bytes, double bandwidth) {
  return Duration(std::llround(static_cast<double>(bytes) / bandwidth * 1e9));
}

}  // namespace

TransferTimes::TransferTimes(const NetworkProfile& profile, std::uint64_t seed)
    : profile_(profile),
      nic_bandwidth_(profile.nic_bandwidth.value_or(profile.link.bandwidth)),
      random_(Random(seed).fork("latency")) {}

void TransferTimes::set_link(NodeId from, NodeId to, const LinkProfile& link_profile) {
  link(from, to).profile = link_profile;
}

/// A message enters the network card when that is free, and the link at the same moment or as soon
/// as the link is free. Both carry it at the same time, so it leaves the link when the slower one
/// is done.
Passage TransferTimes::depart(TimePoint now, NodeId from, NodeId to, std::size_t bytes) {
  TimePoint& nic_free = nic(from).outward_free;
  Link& way = link(from, to);
  const TimePoint on_nic = std::max(now, nic_free);
  nic_free = on_nic + time_for(bytes, nic_bandwidth_);
  const TimePoint on_link = std::max(on_nic, way.free);
  way.free = std::max(on_link + time_for(bytes, way.profile.bandwidth), nic_free);

  const Duration latency = draw_latency(way.profile);
  const TimePoint first_byte = std::max(on_link + latency, way.last_byte);
  way.last_byte = std::max(way.free + latency, first_byte);
  return {nic_free, first_byte, way.last_byte};
}

TimePoint TransferTimes::arrive(const Passage& passage, NodeId to, std::size_t bytes) {
  TimePoint& nic_free = nic(to).inward_free;
  nic_free = std::max(passage.first_byte, nic_free) + time_for(bytes, nic_bandwidth_);
  return std::max(nic_free, passage.last_byte);
}

Duration TransferTimes::latency(NodeId from, NodeId to) {
  return link(from, to).profile.latency;
}

TimePoint TransferTimes::sent_by(NodeId node) {
  return nic(node).outward_free;
}

TransferTimes::Nic& TransferTimes::nic(NodeId node) {
  return at_node(nics_, node, Nic{});
}

TransferTimes::Link& TransferTimes::link(NodeId from, NodeId to) {
  return at_node(at_node(links_, from, {}), to, Link{profile_.link, {}, {}});
}

Duration TransferTimes::draw_latency(const LinkProfile& link) {
  if (profile_.jitter == 0) {
    return link.latency;
  }
  const double latency = static_cast<double>(link.latency.count());
  return Duration(std::llround(latency * (1 + profile_.jitter * random_.uniform())));
}

}  // namespace syncopate::sim
