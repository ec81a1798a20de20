"""Random programs of all collectives of torch.distributed for backend_test.py: backend_programs.py SEED CALLS."""
import random
import sys

import syncopate_torch  # noqa: F401 (makes the backend known)
import torch
from backend_scripts import leave, say
from torch import distributed as dist

Op = dist.ReduceOp
ARITHMETIC, BITS = [Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX], [Op.BAND, Op.BOR, Op.BXOR]
BY_GLOO = [torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64]
OPERATIONS = {dtype: [*ARITHMETIC, Op.AVG, *([] if dtype.is_floating_point else BITS)] for dtype in [*BY_GLOO, torch.bfloat16]}
OPERATIONS.update({torch.bool: ARITHMETIC + BITS, torch.complex64: [Op.SUM, Op.AVG]})
ANY = [Op.SUM, Op.MAX, Op.BOR]  # for bools: true if any is; BXOR: if an odd number is; the others: if all are


class RandomProgram:
    """Draws the same random calls on each rank, and makes each by our backend and by Gloo on the same inputs."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.values = torch.Generator().manual_seed(1000 * seed + self.rank)
        self.groups = []
        for ranks in [list(range(self.size)), [0, self.size - 1], list(range(1, self.size))]:
            self.groups.append((ranks, dist.new_group(ranks), dist.new_group(ranks, backend="gloo")))
        self.calls = [self.all_reduce, self.reduce, self.broadcast, self.all_gather, self.gather, self.gather_single, self.scatter,
                      self.reduce_scatter, self.all_to_all, self.all_to_all_single, self.send_and_receive,
                      self.all_gather_into_tensor, self.reduce_scatter_tensor, self.coalesced, self.objects, self.barrier]

    def run(self, calls):
        for number in range(calls):
            call = self.random.choice(self.calls)
            self.ranks, self.ours, self.gloo = self.random.choice(self.groups)
            self.dtype = self.random.choice(list(OPERATIONS))
            self.shape = self.random.choice([(), (0,), (1,), (7,), (3, 5), (2, 1500)])
            self.root = self.random.choice(self.ranks)
            self.gaps = self.random.random() < 0.3
            self.later = self.random.random() < 0.5
            self.op = self.random.choice(OPERATIONS[self.dtype])
            if self.rank in self.ranks:
                self.what = f"call {number}: {call.__name__} of {self.dtype}, {self.shape}, among {self.ranks}"
                call()

    def drawn(self, shape=None):
        """Draws a tensor of this rank. Its numbers are small, so that sums of float16 values are exact."""
        shape = self.shape if shape is None else shape
        numbers = torch.randint(0 if self.dtype == torch.bool else 1, 4, shape, generator=self.values).to(self.dtype)
        if self.dtype.is_complex:
            numbers = torch.complex(numbers.real, 2 * numbers.real)
        if self.gaps and numbers.dim() > 0:
            numbers = torch.stack([numbers, numbers], -1)[..., 0]
        return numbers

    def ended(self, work):
        if work is not None:
            work.wait()
            assert work.is_completed(), self.what

    def expect(self, ours, expected):
        assert ours.dtype == expected.dtype and ours.shape == expected.shape, self.what
        assert torch.equal(ours, expected), f"{self.what}: {ours} and {expected}"

    def gathered(self, tensor):
        """Gathers the inputs of all members by Gloo. Sends them as bytes with one byte more, since Gloo of torch 1.13 supports
        neither every type nor empty tensors."""
        whole = tensor.clone(memory_format=torch.contiguous_format)
        payload = torch.cat([whole.reshape(-1).view(torch.uint8), torch.ones(1, dtype=torch.uint8)])
        places = [torch.empty_like(payload) for _ in self.ranks]
        dist.all_gather(places, payload, group=self.gloo)
        return [place[:-1].clone().view(self.dtype).view(whole.shape) for place in places]

    def reduced(self, tensor):
        """Computes the reduction over all members: by Gloo, or from the inputs that Gloo gathers."""
        if self.dtype in BY_GLOO and self.op != dist.ReduceOp.AVG:
            whole = tensor.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(whole, op=self.op, group=self.gloo)
            return whole
        parts = torch.stack(self.gathered(tensor))
        if self.op == dist.ReduceOp.AVG:
            whole = parts.sum(0).to(self.dtype)  # exact, since the numbers are small
            if self.dtype.is_complex:  # torch 2 rounds the division of complex numbers differently
                return torch.complex(whole.real / len(self.ranks), whole.imag / len(self.ranks))
            if self.dtype.is_floating_point:
                return whole / len(self.ranks)
            return whole.div(len(self.ranks), rounding_mode="trunc")
        if self.dtype == torch.bool:
            counts = parts.sum(0)
            if self.op == dist.ReduceOp.BXOR:
                return counts % 2 == 1
            return counts > 0 if self.op in ANY else counts == len(self.ranks)
        if self.dtype == torch.bfloat16:
            parts = parts.float()  # torch 1.13 has no product of bfloat16
        whole = {"SUM": parts.sum, "PRODUCT": parts.prod, "MIN": parts.amin, "MAX": parts.amax}[_name(self.op)](0)
        return whole.to(self.dtype)

    def all_reduce(self):
        ours = self.drawn()
        expected = self.reduced(ours)
        self.ended(dist.all_reduce(ours, op=self.op, group=self.ours, async_op=self.later))
        self.expect(ours, expected)

    def reduce(self):
        ours = self.drawn()
        expected, before = self.reduced(ours), ours.clone()
        self.ended(dist.reduce(ours, self.root, op=self.op, group=self.ours, async_op=self.later))
        self.expect(ours, expected if self.rank == self.root else before)

    def broadcast(self):
        ours = self.drawn()
        expected = self.gathered(ours)[self.ranks.index(self.root)]
        self.ended(dist.broadcast(ours, self.root, group=self.ours, async_op=self.later))
        self.expect(ours, expected)

    def all_gather(self):
        own = self.drawn()
        places = [torch.empty_like(own) for _ in self.ranks]
        self.ended(dist.all_gather(places, own, group=self.ours, async_op=self.later))
        for place, expected in zip(places, self.gathered(own)):
            self.expect(place, expected)

    def gather(self):
        own = self.drawn()
        expected = self.gathered(own)
        places = [torch.empty_like(own) for _ in self.ranks] if self.rank == self.root else None
        self.ended(dist.gather(own, places, self.root, group=self.ours, async_op=self.later))
        for place, part in zip(places or [], expected):
            self.expect(place, part)

    def gather_single(self):
        """torch.distributed has it since torch 2.15, so this calls the method of the group."""
        own = self.drawn()
        expected, is_root = torch.stack(self.gathered(own)), self.rank == self.root
        place = self.drawn((len(self.ranks), *self.shape)) if is_root else torch.empty(0, dtype=self.dtype)
        options = dist.GatherOptions()
        options.rootRank = self.ranks.index(self.root)
        self.ended(self.ours.gather_single(place, own, options))
        if is_root:
            self.expect(place, expected)

    def scatter(self):
        parts = [self.drawn() for _ in self.ranks]
        ours = torch.empty_like(parts[0])
        of_root = self.gathered(torch.stack(parts))[self.ranks.index(self.root)]
        whole = parts if self.rank == self.root else None
        self.ended(dist.scatter(ours, whole, self.root, group=self.ours, async_op=self.later))
        self.expect(ours, of_root[self.ranks.index(self.rank)])

    def reduce_scatter(self):
        parts = [self.drawn() for _ in self.ranks]
        ours = torch.empty_like(parts[0])
        expected = self.reduced(torch.stack(parts))
        self.ended(dist.reduce_scatter(ours, parts, op=self.op, group=self.ours, async_op=self.later))
        self.expect(ours, expected[self.ranks.index(self.rank)])

    def all_gather_into_tensor(self):
        own = self.drawn()
        place = self.drawn((len(self.ranks), *self.shape))
        self.ended(dist.all_gather_into_tensor(place, own, group=self.ours, async_op=self.later))
        self.expect(place, torch.stack(self.gathered(own)))

    def reduce_scatter_tensor(self):
        whole = self.drawn((len(self.ranks), *self.shape))
        ours = self.drawn()
        expected = self.reduced(whole)
        self.ended(dist.reduce_scatter_tensor(ours, whole, op=self.op, group=self.ours, async_op=self.later))
        self.expect(ours, expected[self.ranks.index(self.rank)])

    def coalesced(self):
        """Passes two tensors in one call. Calls methods of the group, since torch.distributed has renamed its functions."""
        own, more, members = self.drawn(), self.drawn((5,)), len(self.ranks)
        if not self.dtype.is_complex:
            options = dist.AllreduceCoalescedOptions()
            options.reduceOp = self.op
            expected = self.reduced(own), self.reduced(more)
            reduced = own.clone(), more.clone()
            self.ours.allreduce_coalesced(list(reduced), options).wait()
            for found, right in zip(reduced, expected):
                self.expect(found, right)
        lists = [[torch.empty_like(own), torch.empty_like(more)] for _ in self.ranks]
        self.ours.allgather_coalesced(lists, [own, more]).wait()
        whole = [self.drawn((members, *self.shape)), self.drawn((members, 5))]
        self.ours.allgather_into_tensor_coalesced(whole, [own, more]).wait()
        for number, tensor in enumerate((own, more)):
            expected = self.gathered(tensor)
            self.expect(whole[number], torch.stack(expected))
            for places, right in zip(lists, expected):
                self.expect(places[number], right)
        options = dist.ReduceScatterOptions()
        options.reduceOp = self.op
        expected = self.reduced(whole[0]), self.reduced(whole[1])
        self.ours.reduce_scatter_tensor_coalesced([own, more], whole, options).wait()
        for found, right in zip((own, more), expected):
            self.expect(found, right[self.ranks.index(self.rank)])

    def objects(self):
        everything, members = [{"rank": rank, "text": "x" * rank} for rank in self.ranks], len(self.ranks)
        own, is_root = everything[self.ranks.index(self.rank)], self.rank == self.root
        gathered, heard, scattered = [None] * members, [own, "y"], [None]
        dist.all_gather_object(gathered, own, group=self.ours)
        dist.broadcast_object_list(heard, self.root, group=self.ours)
        assert gathered == everything and heard == [everything[self.ranks.index(self.root)], "y"], self.what
        if members < self.size:
            return  # torch 1.13 confuses ranks in a group with ranks in the job
        at_root = [None] * members if is_root else None
        dist.gather_object(own, at_root, self.root, group=self.ours)
        dist.scatter_object_list(scattered, everything if is_root else [None] * members, self.root, group=self.ours)
        assert at_root == (everything if is_root else None) and scattered == [own], self.what

    def barrier(self):
        self.ended(dist.barrier(group=self.ours, async_op=self.later))

    def all_to_all(self):
        rows = 3 if self.later else 1
        own = [self.drawn((rows, to)) for to in range(len(self.ranks))]
        here = self.ranks.index(self.rank)
        ours = [torch.empty((rows, here), dtype=self.dtype) for _ in self.ranks]
        self.ended(dist.all_to_all(ours, own, group=self.ours, async_op=self.later))
        expected = self.gathered(torch.cat(own, 1))
        for place, sent in zip(ours, expected):
            self.expect(place, sent.split(list(range(len(self.ranks))), 1)[here])

    def all_to_all_single(self):
        members, here = len(self.ranks), self.ranks.index(self.rank)
        rows = [[(sender + receiver) % 3 for receiver in range(members)] for sender in range(members)]
        to, sent = rows[here], [rows[sender][here] for sender in range(members)]
        own = self.drawn((sum(to), 4))
        ours = torch.empty((sum(sent), 4), dtype=self.dtype)
        self.ended(dist.all_to_all_single(ours, own, sent, to, group=self.ours, async_op=self.later))
        padded = torch.cat([own, torch.ones(2 * members - len(own), 4).to(self.dtype)])
        parts = [part.split([*rows[sender], 2 * members - sum(rows[sender])])[here]
                 for sender, part in enumerate(self.gathered(padded))]
        self.expect(ours, torch.cat(parts))

    def send_and_receive(self):
        """Sends around a ring; the first member receives from any rank."""
        here, members = self.ranks.index(self.rank), len(self.ranks)
        if members == 1:
            return
        after, before = self.ranks[(here + 1) % members], self.ranks[here - 1]
        own = self.drawn()
        place = torch.empty_like(own)
        sending = dist.isend(own, after, group=self.ours, tag=7)
        if here == 0:
            assert dist.recv(place, group=self.ours, tag=7) == before, self.what
        else:
            assert dist.recv(place, before, group=self.ours, tag=7) == before, self.what
        sending.wait()
        self.expect(place, self.gathered(own)[here - 1])


def _name(op):
    return next(name for name in ("SUM", "PRODUCT", "MIN", "MAX") if op == getattr(Op, name))


def main(seed, calls):
    dist.init_process_group("syncopate")
    RandomProgram(int(seed)).run(int(calls))
    say(rank=dist.get_rank(), calls=int(calls))
    leave()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
