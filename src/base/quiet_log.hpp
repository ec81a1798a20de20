#pragma once

namespace syncopate::log {

/// From now on this process logs nothing, unless it has set up a log itself (`set_up`, or spdlog's
/// default logger): a library writes nothing to its user's terminal.
void keep_quiet();

}  // namespace syncopate::log
