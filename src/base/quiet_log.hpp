#pragma once

#include <functional>
#include <string>

namespace syncopate::log {

/// From now on this process logs nothing, unless it has set up a log itself (`set_up`, or spdlog's
/// default logger): a library writes nothing to its user's terminal.
void keep_quiet();

enum class Level { debug, info, warning };

/// From now on `take` gets every line of `least` and above, without control characters, from any
/// thread, one at a time. An empty function: nobody does.
void send_to(std::function<void(Level level, const std::string& line)> take, Level least);

}  // namespace syncopate::log
