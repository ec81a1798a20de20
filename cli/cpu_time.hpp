#pragma once

namespace syncopate::cli {

/// CPU seconds that all threads of this process have used so far.
double cpu_seconds();

}  // namespace syncopate::cli
