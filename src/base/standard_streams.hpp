#pragma once

namespace syncopate {

/// Opens /dev/null for each of standard input, output and error that is closed; supervisors of
/// services may leave them closed. Otherwise the next file or socket would get the stream's number,
/// and the output of the process would go there. A write to standard output still fails, so that no
/// output is lost silently.
void open_standard_streams();

}  // namespace syncopate
