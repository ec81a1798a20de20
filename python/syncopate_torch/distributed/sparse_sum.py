"""Reductions of sparse tensors over a process group, as DistributedDataParallel needs for `Embedding(sparse=True)`."""
import threading

import torch

from syncopate_torch.core.errors import ConfigError
from syncopate_torch.core.group import divide, type_name
from syncopate_torch.core.torch_versions import SPARSE_UNCHECKED, hidden_from_dynamo
from syncopate_torch.distributed.works import Work

_MOST_DIMENSIONS = 64  # of a torch tensor


@hidden_from_dynamo()
class SparseSum(Work):
    """The sum of `torch.sparse_coo` tensors of one shape, which may have different numbers of values. Only their
    indices and values are sent, not the zeros between them.

    The number of values of each rank is gathered first, in the order of the script. The rest follows in the callback
    thread, because a rank then knows the size of the data to receive.
    """

    def __init__(self, group, tensor, op, callbacks):
        """group: a `ProcessGroup` of syncopate. op: "sum" or "mean"."""
        if op not in ("sum", "mean"):
            raise ConfigError(f"a sparse tensor has SUM and AVG, found {op}: call to_dense() before")
        if op == "mean" and tensor.dtype == torch.bool:
            raise ConfigError("ReduceOp.AVG is for numbers, found a sparse tensor of torch.bool: use SUM (any)")
        own = tensor.detach().cpu().coalesce()
        shapes = group.gathered(_shape_of(own), f"shapes, for a {op} of sparse {type_name(own.dtype)}")
        super().__init__([], [tensor], callbacks, lambda: tensor.copy_(self._sum), own)
        self._is_there = threading.Event()
        self._sum = self._failure = None
        callbacks.add(lambda: self._run(group, own, shapes, op))

    def is_completed(self):
        if self._is_there.is_set():
            self._end(None)
        return self._ended

    def _wait_for(self, seconds):
        self._callbacks.run_until(self._is_there.is_set)
        if not self._is_there.wait(seconds):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def _run(self, group, own, shapes, op):
        try:
            self._sum = _sum_of(group, own, shapes.result())
            if op == "mean":
                divide(self._sum._values(), group.size())
        except Exception as error:  # raised in the waiting call of the script
            self._failure = error
        self._is_there.set()


def _sum_of(group, own, shapes):
    _expect_equal(shapes)
    counts = [int(shape[2]) for shape in shapes]
    works = [group.gathered(_extended(rows, max(counts)), f"{what} of sparse tensors")
             for what, rows in (("indices", own.indices().t()), ("values", own.values()))]
    indices, values = (torch.cat([rows[:count] for rows, count in zip(work.result(), counts)]) for work in works)
    return torch.sparse_coo_tensor(indices.t(), values, own.shape, **SPARSE_UNCHECKED).coalesce()


def _shape_of(tensor):
    """Returns the numbers of sparse and of dense dimensions, the number of values, and the lengths of all
    dimensions."""
    facts = [tensor.sparse_dim(), tensor.dense_dim(), tensor._nnz(), *tensor.shape]
    return torch.tensor(facts + [-1] * (3 + _MOST_DIMENSIONS - len(facts)))


def _expect_equal(shapes):
    first = _text(shapes[0])
    for rank, each in enumerate(shapes):
        if _text(each) != first:
            raise ConfigError(f"a sum of sparse tensors takes those of one shape, found {first} on rank 0 and {_text(each)} on rank "
                              f"{rank}")


def _text(shape):
    lengths = [length for length in shape[3:].tolist() if length >= 0]
    count = int(shape[0])
    return f"{lengths} with {count} sparse {'dimension' if count == 1 else 'dimensions'}"


def _extended(rows, count):
    """Pads with rows of zeros to `count` rows: all ranks gather the same number."""
    return torch.cat([rows, rows.new_zeros((count - len(rows), *rows.shape[1:]))])
