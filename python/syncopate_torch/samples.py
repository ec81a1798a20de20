"""A worker's share of a dataset."""
import ctypes
import weakref

from syncopate_torch import _c


class ShareSampler:
    """The order in which this worker trains on the samples of a dataset, as a batch sampler of `DataLoader`.

    In each epoch all workers together take every sample once. With option `data-order` `fixed` the part of each worker
    follows from the job's seed; with `leased`, which schemes whose workers take different numbers of steps have by
    default, faster workers take more. An iteration is an epoch and yields lists of indices, one list a step of this
    worker.
    """

    def __init__(self, job, samples, batch_size):
        self._job = job  # leaves after this
        self._share = _c.made("share_open", job.handle, samples, batch_size)
        self._close = weakref.finalize(self, _c.call, "share_close", self._share)

    @property
    def step_size(self):
        """Samples of a step of this worker."""
        return _c.call("share_step_size", self._share)

    @property
    def epoch(self):
        """Whole epochs so far."""
        return _c.call("share_epoch", self._share)

    def __iter__(self):
        _c.call("share_next_epoch", self._share)
        while step := self._next():
            yield step

    def _next(self):
        indices, count = ctypes.POINTER(ctypes.c_uint64)(), ctypes.c_size_t()
        _c.call("share_next", self._share, ctypes.byref(indices), ctypes.byref(count))
        return indices[:count.value]
