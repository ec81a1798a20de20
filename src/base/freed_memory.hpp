#pragma once

namespace syncopate {

/// From now on up to 1 GiB of memory that this process frees stays for its next allocations. A
/// training step frees and allocates the same large tensors again and again. By default glibc
/// returns them to the kernel, which clears each page again: a tenth of a step of ResNet-18.
void keep_freed_memory();

}  // namespace syncopate
