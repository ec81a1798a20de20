#pragma once

namespace syncopate {

/// Opens /dev/null in the place of each of standard input, output and error that is closed, as
/// supervisors of services leave them. Otherwise the next file or socket would get its number, and
/// what a process prints would go there. A write to standard output still fails, so that nothing is
/// lost without a word.
void open_standard_streams();

}  // namespace syncopate
