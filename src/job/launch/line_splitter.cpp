#include "job/launch/line_splitter.hpp"

#include <utility>

namespace syncopate::cli {

void LineSplitter::add(std::string_view bytes) {
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    sink_(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
}

void LineSplitter::finish() {
  if (!rest_.empty()) {
    sink_(std::exchange(rest_, {}));
  }
}

}  // namespace syncopate::cli
