#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace syncopate {

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    const int mode = stream == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    // The lowest number that is free is that of the stream. Without /dev/null it stays closed.
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", mode) < 0) {
      return;
    }
  }
}

}  // namespace syncopate
