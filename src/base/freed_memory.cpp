#include "base/freed_memory.hpp"

#include <malloc.h>

namespace syncopate {

void keep_freed_memory() {
  constexpr int kept = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kept);
  mallopt(M_MMAP_THRESHOLD, kept);
}

}  // namespace syncopate
