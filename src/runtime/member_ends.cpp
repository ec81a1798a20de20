#include "runtime/member_ends.hpp"

#include <fmt/format.h>

namespace syncopate::member_ends {

std::string died(std::string_view who, std::string_view sign) {
  return fmt::format("{} died; {}", who, sign);
}

std::string died_at_the_head(std::string_view who) {
  return fmt::format("{} died, so this job cannot go on", who);
}

std::string silent(std::string_view who, std::string_view sign) {
  return fmt::format("{} no longer answers; {}", who, sign);
}

std::string hangs(std::string_view who, std::string_view sign) {
  return fmt::format("{} hangs: {}", who, sign);
}

std::string takes_no_step(std::string_view who, Duration since, std::uint64_t step) {
  return hangs(who, fmt::format("its program has taken no step for {:.0f} s since step {}",
                                to_seconds(since), step));
}

std::string stands_still(std::string_view who, Duration since) {
  return hangs(who,
               fmt::format("its main task has not gone on for {:.0f} s, though its process lives",
                           to_seconds(since)));
}

std::string evaluates_no_more(std::string_view who, Duration since, std::string_view sign) {
  return fmt::format("{} has made no progress for {:.0f} s after the last worker left; {}", who,
                     to_seconds(since), sign);
}

std::string never_came(std::string_view who, Duration waited) {
  return fmt::format("after {:.0f} s there is still no sign of {}", to_seconds(waited), who);
}

std::string ended_before_training(std::string_view who) {
  return fmt::format("{} has ended before training began", who);
}

std::string left_or_ended(std::string_view who, std::string_view loss) {
  return fmt::format("{} has left the job or ended: {}", who, loss);
}

std::string not_reached(std::string_view loss) {
  return fmt::format(
      "{}; if its host is not reached at that address, name another of that host's interfaces "
      "there by --interface or SYNCOPATE_INTERFACE",
      loss);
}

}  // namespace syncopate::member_ends
