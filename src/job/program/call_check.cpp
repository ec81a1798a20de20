#include "job/program/call_check.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/errors.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// A wait of this length is unusual.
constexpr Duration patience = std::chrono::seconds(1);

/// A member that is always the last one never waits; the reports of the others would pile up.
constexpr std::uint64_t taken_every = 64;

/// For the others to notice what a member has called that failed: some of their polls.
constexpr Duration time_to_explain = std::chrono::seconds(2);

/// A call travels as its number, u64, and its text.
std::vector<std::byte> payload_of(std::uint64_t number, const std::string& text) {
  std::vector<std::byte> payload(sizeof number + text.size());
  ByteWriter(payload).put(number).put_bytes(std::as_bytes(std::span(text)));
  return payload;
}

}  // namespace

std::string CollectiveCall::text() const {
  std::string text = kind;
  if (!type.empty()) {
    text += fmt::format(" of {} {}", count, type);
  }
  if (*reduction != '\0') {
    text += fmt::format(" ({})", reduction);
  }
  if (!of_type.empty()) {
    text += fmt::format(" {} {}", *reduction != '\0' ? "for" : "of", of_type);
  }
  if (root) {
    text += fmt::format(" with root {}", *root);
  }
  return text;
}

/// The checksum FNV-1a (Fowler, Noll and Vo), folded.
std::uint8_t CollectiveCall::digest() const {
  std::uint32_t sum = 2166136261U;
  for (const char character : text()) {
    sum = (sum ^ static_cast<unsigned char>(character)) * 16777619U;
  }
  return static_cast<std::uint8_t>(sum ^ sum >> 8U ^ sum >> 16U ^ sum >> 24U);
}

bool CollectiveCall::is_sent_by(Rank rank) const {
  const std::string_view name = kind;
  return root == rank.value && (name == "broadcast" || name == "scatter");
}

void CallCheck::begin(const CollectiveCall& call) {
  if (!failure_.empty()) {
    throw ConfigError(failure_);
  }
  recent_[++number_ % recent_.size()] = call;
  waits_since_.reset();
  reported_ = false;
  if (call.is_sent_by(group_.rank())) {
    report_to_all(number_);
    as_root_ = number_;
  } else if (number_ % taken_every == 0) {
    compare_reports();
  }
}

/// Another member that was a root, too, has reported that before it came to this collective.
void CallCheck::end() {
  if (as_root_ > 0 && as_root_ < number_) {
    as_root_ = 0;
    compare_reports();
  }
}

void CallCheck::poll() {
  if (number_ == 0) {
    return;  // members come to know each other
  }
  const TimePoint now = group_.world().now();
  waits_since_ = waits_since_.value_or(now);
  if (!reported_ && now >= *waits_since_ + patience) {
    reported_ = true;
    report_to_all(number_);
  }
  compare_reports();
}

void CallCheck::explain() {
  report_to_all(number_);
  const TimePoint until = group_.world().now() + time_to_explain;
  do {
    compare_reports();
    group_.world().sleep_until(group_.world().now() + Group::glance);
  } while (group_.world().now() < until);
}

CallCheck::Report CallCheck::report_in(std::span<const std::byte> payload, Rank from) {
  ByteReader reader(payload);
  const auto number = reader.take<std::uint64_t>();
  const std::span<const std::byte> text = reader.take_bytes(reader.remaining());
  return {from, number, {reinterpret_cast<const char*>(text.data()), text.size()}};
}

void CallCheck::report_to_all(std::uint64_t number) const {
  const std::vector<std::byte> payload = payload_of(number, call(number).text());
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    group_.transport().post(group_.node(group_.neighbour(step)), tag_, payload);
  }
}

void CallCheck::take_reports() {
  for (std::uint32_t step = 1; step < group_.size(); ++step) {
    const Rank from = group_.neighbour(step);
    try {
      while (const auto message =
                 group_.transport().try_receive(group_.node(from), tag_, group_.world().now())) {
        reports_.push_back(report_in(message->payload, from));
      }
    } catch (const PeerLost&) {  // the wait that needs this member throws the same
    }
  }
}

void CallCheck::compare() {
  for (const Report& other : std::exchange(reports_, {})) {
    if (other.number > number_) {
      reports_.push_back(other);
    } else if (other.number + recent_.size() > number_ && call(other.number).text() != other.text) {
      refuse(other);
    }
  }
}

void CallCheck::refuse(const Report& other) {
  report_to_all(other.number);
  const Rank own = group_.rank();
  const std::string here = call(other.number).text();
  const bool first = own.value < other.from.value;
  failure_ = fmt::format(
      "collective {} of the group: worker {} calls {}, worker {} {}; every worker of a group calls "
      "the same collectives in the same order",
      other.number, group_.rank_in_job(first ? own : other.from).value, first ? here : other.text,
      group_.rank_in_job(first ? other.from : own).value, first ? other.text : here);
  throw ConfigError(failure_);
}

}  // namespace syncopate
