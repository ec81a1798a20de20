#pragma once

#include "report/recorder.hpp"

namespace syncopate::cli {

// What the process of a coordinator exchanges with its supervisor.

/// Writes an event to `descriptor`, one line of JSON.
void emit_line(int descriptor, const Recorder::Json& event);

/// From now on, SIGTERM is the user's wish for an end.
void heed_wish_for_end();
/// Whether the user wants an end.
bool end_is_wished();

}  // namespace syncopate::cli
