// Loops over the lanes of vectors, for sources that Highway compiles once for each instruction set.
// Such a source includes this after <hwy/foreach_target.h>; the guard lets each compilation have
// its own copy. At the first call of a kernel Highway chooses the best copy that the CPU supports.
#if defined(KERNELS_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_LANES_INL
#undef KERNELS_LANES_INL
#else
#define KERNELS_LANES_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace syncopate::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls body(tag, i) for all lanes of 0 to count − 1: most as whole vectors, then single values.
///
/// With several strands, vectors are taken from each of them in turn. The processor prefetches in
/// each strand, so more memory accesses are under way than with one strand. Eight streams (strands
/// times the arrays that `body` touches) are best; with more, blocks whose length is a power of two
/// collide in the cache.
template <size_t strands = 1, class Body>
HWY_INLINE void for_lanes(size_t count, const Body& body) {
  const hn::ScalableTag<float> vectors;
  const hn::CappedTag<float, 1> single;
  const size_t width = hn::Lanes(vectors);
  const size_t strand = count / (strands * width) * width;
  for (size_t i = 0; i < strand; i += width) {
    if constexpr (strands == 1) {
      body(vectors, i);
    } else {
      for (size_t begin = 0; begin < strands * strand; begin += strand) body(vectors, begin + i);
    }
  }
  for (size_t i = strands * strand; i < count; ++i) body(single, i);
}

/// The larger of `greatest` and the bits of |x|, lane by lane. The exponent is in the highest of
/// these bits, so infinity is greater than any finite value, and NaN is greater than infinity.
template <class Tag>
HWY_INLINE hn::Vec<Tag> greater_magnitude(Tag tag, hn::Vec<Tag> greatest, const float* values) {
  const hn::RebindToFloat<Tag> floats;
  return hn::Max(greatest, hn::BitCast(tag, hn::Abs(hn::LoadU(floats, values))));
}

}  // namespace syncopate::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
