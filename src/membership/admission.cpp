#include "membership/admission.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/printable.hpp"

namespace syncopate {
namespace {

constexpr std::array roles{wire::ROLE_WORKER, wire::ROLE_SERVER, wire::ROLE_EVALUATOR};

const char* noun(wire::Role role) {
  return role == wire::ROLE_WORKER ? "worker" : role == wire::ROLE_SERVER ? "server" : "evaluator";
}

std::string count_of(std::uint32_t count, wire::Role role) {
  return fmt::format("{} {}{}", count, noun(role), count == 1 ? "" : "s");
}

std::string cannot_join(const JobSlots::SlotRequest& request, const std::string& objection) {
  return fmt::format("{} cannot join: {}", request.describe(), objection);
}

template <class Message>
JobSlots::SlotRequest request_of(const Message& message, std::optional<std::uint32_t> index) {
  return {.role = message.role(),
          .index = index,
          .host = printable(message.host()),
          .pid = message.pid()};
}

/// Most names in one message: nearly all members of a large job may be missing.
constexpr std::size_t most_names = 16;

constexpr const char* too_late = "the job has already started";
constexpr const char* training_ends = "training has ended, or is about to";

}  // namespace

std::string slot_name(wire::Role role, std::uint32_t index) {
  return name_of(role_from_wire(role), Rank{index});
}

Member member_of(NodeId node, const wire::Join& join) {
  return {
      .node = node,
      .role = role_from_wire(join.role()),
      .rank = Rank{join.index()},
      .host = printable(join.host()),
      .pid = join.pid(),
      .address = join.address(),
      .device = printable(join.device()),
      .machine = join.machine(),
  };
}

std::string JobSlots::SlotRequest::describe() const {
  const std::string name = index ? slot_name(role, *index) : fmt::format("another {}", noun(role));
  return fmt::format("{} (pid {} on {})", name, pid, host);
}

std::optional<std::string> JobSlots::objection_to(NodeId node, const SlotRequest& request) const {
  role_from_wire(request.role);  // refuses an unknown one
  const std::uint32_t slots = slots_of(request.role);
  if (!request.index) {
    return next_free(node, request.role) < slots
               ? std::nullopt
               : std::optional(fmt::format("this job has room for {}, and every slot is taken",
                                           count_of(slots, request.role)));
  }
  if (*request.index >= slots) {
    return fmt::format("this job has room for {}", count_of(slots, request.role));
  }
  const Holder* holder = holder_of(request.role, *request.index);
  const auto own = holders_.find(node);
  if (holder == nullptr || (own != holders_.end() && &own->second == holder)) {
    return std::nullopt;
  }
  return fmt::format("its slot is taken by pid {} on {}", holder->slot.pid, holder->slot.host);
}

std::uint32_t JobSlots::take(NodeId node, const SlotRequest& request) {
  const std::uint32_t index = request.index ? *request.index : next_free(node, request.role);
  Holder& holder = holders_[node] = {.slot = request};
  holder.slot.index = index;
  return index;
}

std::string JobSlots::holder_name(NodeId node) const {
  const auto holder = holders_.find(node);
  return holder == holders_.end() ? "" : holder->second.slot.describe();
}

bool JobSlots::all_filled() const {
  const auto filled = std::count_if(holders_.begin(), holders_.end(),
                                    [](const auto& entry) { return entry.second.joined; });
  return filled == std::int64_t{options_.workers} + options_.servers + options_.evaluators;
}

std::string JobSlots::absent() const {
  std::vector<std::string> names;
  std::size_t unnamed = 0;
  for (const wire::Role role : roles) {
    for (std::uint32_t index = 0; index < slots_of(role); ++index) {
      const Holder* holder = holder_of(role, index);
      if (holder != nullptr && holder->joined) {
        continue;
      }
      if (names.size() < most_names) {
        names.push_back(slot_name(role, index));
      } else {
        ++unnamed;
      }
    }
  }
  if (unnamed > 0) {
    names.push_back(fmt::format("{} more", unnamed));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::uint32_t JobSlots::slots_of(wire::Role role) const {
  switch (role) {
    case wire::ROLE_WORKER: return options_.workers;
    case wire::ROLE_SERVER: return options_.servers;
    case wire::ROLE_EVALUATOR: return options_.evaluators;
    default: return 0;
  }
}

const JobSlots::Holder* JobSlots::holder_of(wire::Role role, std::uint32_t index) const {
  const auto found = std::find_if(holders_.begin(), holders_.end(), [&](const auto& entry) {
    return entry.second.slot.role == role && entry.second.slot.index == index;
  });
  return found == holders_.end() ? nullptr : &found->second;
}

std::uint32_t JobSlots::next_free(NodeId node, wire::Role role) const {
  const auto own = holders_.find(node);
  if (own != holders_.end() && own->second.slot.role == role) {
    return *own->second.slot.index;
  }
  std::uint32_t index = 0;
  while (index < slots_of(role) && holder_of(role, index) != nullptr) {
    ++index;
  }
  return index;
}

Admission::Answer Admission::enquired(NodeId node, const wire::Enquire& enquiry) {
  if (enquiry.role() == wire::ROLE_UNKNOWN) {
    return {};
  }
  if (const auto join = joins_.find(node); join != joins_.end()) {
    return {.index = join->second.index()};
  }
  const auto index = enquiry.has_index() ? std::optional(enquiry.index()) : std::nullopt;
  const JobSlots::SlotRequest request = request_of(enquiry, index);
  auto objection = objection_to_time(node, request.role);
  objection = objection ? objection : slots_.objection_to(node, request);
  if (objection) {
    return {.refusal = cannot_join(request, *objection)};
  }
  return {.index = slots_.take(node, request)};
}

Admission::Answer Admission::joined(NodeId node, const wire::Join& join) {
  const JobSlots::SlotRequest request = request_of(join, join.index());
  if (const auto objection = objection_to(node, join)) {
    return {.refusal = cannot_join(request, *objection)};
  }
  slots_.take(node, request);
  slots_.fill(node);
  joins_.emplace(node, join);
  return {.index = join.index()};
}

std::optional<std::string> Admission::objection_to(NodeId node, const wire::Join& join) const {
  if (auto objection = objection_to_time(node, join.role())) {
    return objection;
  }
  if (joins_.contains(node)) {
    return "it has joined before";
  }
  if (const auto objection = slots_.objection_to(node, request_of(join, join.index()))) {
    return objection;
  }
  if (!agreement_.empty() && join.agreement() != agreement_) {
    return fmt::format("it runs \"{}\", but this job is \"{}\"", join.agreement(), agreement_);
  }
  for (const auto& [other_node, other] : joins_) {
    if (other.agreement() != join.agreement()) {
      return fmt::format("it runs \"{}\", but {} runs \"{}\"", join.agreement(),
                         slot_name(other.role(), other.index()), other.agreement());
    }
  }
  return std::nullopt;
}

/// After the start, a slot is free only if its member was lost.
std::optional<std::string> Admission::objection_to_time(NodeId node, wire::Role role) const {
  if (!closed_) {
    return std::nullopt;
  }
  if (!slots_.has_room_for(node, role)) {
    return too_late;
  }
  return ended_ ? std::optional<std::string>(training_ends) : std::nullopt;
}

void Admission::refuse(NodeId node) {
  refused_.insert(node);
  lost(node);
}

void Admission::lost(NodeId node) {
  if (!joins_.contains(node)) {
    slots_.give_back(node);
  }
}

}  // namespace syncopate
