#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective/group.hpp"

namespace syncopate {

/// What one member of a group calls; the others have to call the same at the same place in the
/// order of the group's collectives.
struct CollectiveCall {
  const char* kind = "";       ///< "allreduce"
  std::string_view type = "";  ///< of the values; empty: bytes, whose number may differ
  std::uint64_t count = 0;     ///< of the values
  std::string of_type = {};    ///< what bytes are, or a reduction is for, as the program says
  const char* reduction = "";  ///< empty: none
  std::optional<std::uint32_t> root = {};

  /// "allreduce of 10 float32 (sum)"; members that call the same have the same text.
  std::string text() const;
  /// The digest covers all that members have in common; calls that differ have the same one in one
  /// of 256 cases.
  std::uint8_t digest() const;
  /// True for a member that waits for no other one: it would not see that another root does so,
  /// too.
  bool is_sent_by(Rank rank) const;
};

/// Finds members of a group that call different collectives at the same place, which then wait for
/// each other in vain.
///
/// The messages of members that call different ones have different tags (`Group::set_call`), so
/// that these wait for each other. A member that has waited for a second, or whose collective has
/// failed, reports to the others what it calls; each compares that with its own calls, in its
/// waits. The first one to see a difference reports back, and every call of the group fails from
/// then on. Other collectives send nothing for it, but that a root which waits for nobody reports
/// at once.
///
/// Thread: that of the group's collectives.
class CallCheck {
 public:
  /// The group outlives this.
  explicit CallCheck(Group& group) : group_(group), tag_(group.tag(tags::calls)) {}

  /// The next collective begins. Errors: ConfigError, for a difference, and after one.
  void begin(const CollectiveCall& call);
  /// The collective has ended. Errors: ConfigError, for a difference in the one before.
  void end();
  /// For the waits of a collective. Errors: ConfigError, for a difference.
  void poll();
  /// Compares what the others have reported so far. Errors: ConfigError, for a difference.
  void compare_reports() {
    take_reports();
    compare();
  }
  /// After an error that a difference may have caused: waits a moment for what the others report.
  /// Errors: ConfigError, for a difference.
  void explain();

 private:
  /// What another member has reported of one of its calls.
  struct Report {
    Rank from;
    std::uint64_t number = 0;
    std::string text;
  };

  const CollectiveCall& call(std::uint64_t number) const {
    return recent_[number % recent_.size()];
  }
  static Report report_in(std::span<const std::byte> payload, Rank from);
  void report_to_all(std::uint64_t number) const;
  void take_reports();
  void compare();
  [[noreturn]] void refuse(const Report& other);

  Group& group_;
  const Tag tag_;                           ///< of reports
  std::uint64_t number_ = 0;                ///< of the collective under way; the first is 1
  std::array<CollectiveCall, 256> recent_;  ///< of the last numbers
  std::optional<TimePoint> waits_since_;    ///< the first poll of this collective
  bool reported_ = false;                   ///< of this collective
  std::uint64_t as_root_ = 0;               ///< the last one that was reported at once; 0: none
  std::vector<Report> reports_;             ///< of calls that this member has not come to
  std::string failure_;                     ///< empty: none
};

}  // namespace syncopate
