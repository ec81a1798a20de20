#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.hpp"

/// What has happened to a member, in words: the one table of these sentences, for every phase of a
/// job and for every kind of member. `who`: "worker 2 (pid 4711 on c3)"; `sign`: "last heard 1.2 s
/// ago, in backward of step 812".
namespace syncopate::member_ends {

/// Its connection broke.
std::string died(std::string_view who, std::string_view sign);
/// The coordinator died, without which no member goes on.
std::string died_at_the_head(std::string_view who);
/// Its connection stands, but nothing comes.
std::string silent(std::string_view who, std::string_view sign);
/// Its heartbeats come, but it makes no progress.
std::string hangs(std::string_view who, std::string_view sign);
/// Its heartbeats come, but its program takes no step.
std::string takes_no_step(std::string_view who, Duration since, std::uint64_t step);
/// The coordinator's own task does not go on.
std::string stands_still(std::string_view who, Duration since);
/// The evaluator does not come to the end of the last evaluations.
std::string evaluates_no_more(std::string_view who, Duration since, std::string_view sign);
/// It has not joined in time.
std::string never_came(std::string_view who, Duration waited);
/// Others wait for it to say what it trains.
std::string ended_before_training(std::string_view who);
/// As another member sees it, which has lost its own connection to it.
std::string left_or_ended(std::string_view who, std::string_view loss);
/// The same, `loss`, of a member on another host with which there has never been a connection.
std::string not_reached(std::string_view loss);

}  // namespace syncopate::member_ends
