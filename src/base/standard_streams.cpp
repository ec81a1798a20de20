#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace syncopate {

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // The lowest number that is free is that of the stream. Without /dev/null it stays closed.
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0) {
      return;
    }
  }
}

}  // namespace syncopate
