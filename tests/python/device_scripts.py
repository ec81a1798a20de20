"""Scripts that use a device whose memory the host cannot access, for device_test.py: device_scripts.py NAME [ARGUMENT...]."""
import os
import types

import torch
import torch.distributed as dist
from torch.nn import functional

import scripts
from calls import run_calls, say
import syncopate_torch as syncopate

TWO = torch.__version__.startswith("2")
ALL_GATHER = "all_gather_into_tensor" if TWO else "_all_gather_base"
REDUCE_SCATTER = "reduce_scatter_tensor" if TWO else "_reduce_scatter_base"


def far_device():
    """Loads the device of far_device.cpp. torch 2 also needs a Python module for it."""
    torch.ops.load_library(os.environ["SYNCOPATE_FAR_DEVICE"])
    if not TWO:
        return torch.device("privateuseone", 0)
    module = types.ModuleType("torch.far")
    answers = {"_lazy_init": None, "is_initialized": True, "is_available": True, "current_device": 0, "device_count": 1,
               "_is_in_bad_fork": False}
    for name, answer in answers.items():
        setattr(module, name, lambda answer=answer: answer)
    torch._register_device_module("far", module)
    return torch.device("far", 0)


def on_host(values):
    """Converts tensors to lists, also inside lists and tuples."""
    if isinstance(values, (list, tuple)):
        return [on_host(each) for each in values]
    return values.cpu().tolist() if isinstance(values, torch.Tensor) else values


class Calls:
    """Collectives of tensors on one device."""

    def __init__(self, device):
        self._device, self.rank, self.size = device, dist.get_rank(), dist.get_world_size()
        self.own = torch.arange(6.) + self.rank

    def there(self, tensor):
        return tensor.clone().to(self._device)

    def changed(self, call, *arguments, **options):
        tensor = self.there(self.own)
        call(tensor, *arguments, **options)
        return tensor

    def room(self, count):
        return [self.there(torch.zeros(count)) for _ in range(self.size)]

    def all_reduce(self):
        columns = self.there(self.own.view(2, 3)).t()
        dist.all_reduce(columns)
        half = self.there(self.own.half())
        dist.all_reduce(half)
        return self.changed(dist.all_reduce, op=dist.ReduceOp.AVG), columns, half

    def one_to_all(self):
        scattered = self.there(torch.zeros(6))
        dist.scatter(scattered, [self.there(self.own + rank) for rank in range(self.size)] if self.rank == 0 else None, 0)
        return self.changed(dist.broadcast, 1), scattered

    def all_to_one(self):
        gathered = self.room(6) if self.rank == 0 else None
        dist.gather(self.there(self.own), gathered, 0)
        reduced = self.changed(dist.reduce, 0, op=dist.ReduceOp.MAX)
        return gathered, reduced if self.rank == 0 else None

    def all_gather(self):
        gathered, flat, objects = self.room(6), self.there(torch.zeros(12)), [None] * self.size
        dist.all_gather(gathered, self.there(self.own))
        getattr(dist, ALL_GATHER)(flat, self.there(self.own))
        dist.all_gather_object(objects, {"rank": self.rank})
        return gathered, flat, objects

    def reduce_scatter(self):
        mine, flat = self.there(torch.zeros(3)), self.there(torch.zeros(3))
        dist.reduce_scatter(mine, [self.there(part) for part in self.own.split(3)])
        getattr(dist, REDUCE_SCATTER)(flat, self.there(self.own))
        return mine, flat

    def all_to_all(self):
        blocks, flat = self.room(3), self.there(torch.zeros(6))
        dist.all_to_all(blocks, [self.there(part) for part in self.own.split(3)])
        dist.all_to_all_single(flat, self.there(self.own))
        return blocks, flat

    def one_to_one(self):
        came = self.there(torch.zeros(6))
        if self.rank == 0:
            dist.send(self.there(self.own), 1)
            dist.recv(came, 1)
        else:
            dist.recv(came, 0)
            dist.send(self.there(self.own), 0)
        return came

    def later(self):
        first, second = self.there(self.own), self.there(self.own)
        work = dist.all_reduce(first, async_op=True)
        half = dist.all_reduce(second, async_op=True).get_future().then(lambda future: future.value()[0] / 2).wait()
        work.wait()
        return first, half


def collectives():
    """Runs each collective on the device and on the CPU."""
    device = far_device()
    dist.init_process_group("syncopate")
    names = [name for name in vars(Calls) if name not in ("there", "changed", "room") and not name.startswith("_")]
    results = {}
    for name in names:
        results[name] = [on_host(getattr(Calls(where), name)()) for where in (device, torch.device("cpu"))]
    say(rank=dist.get_rank(), results=results)
    dist.destroy_process_group()


def one_word():
    """Takes the steps of `script_cases.reference` by DistributedDataParallel."""
    device = far_device()
    dist.init_process_group("syncopate")
    rank, size = dist.get_rank(), dist.get_world_size()
    points, labels, network = scripts.problem()
    network = torch.nn.parallel.DistributedDataParallel(network.to(device))
    optimizer = scripts.sgd(network)
    for _ in range(scripts.STEPS):
        optimizer.zero_grad()
        functional.cross_entropy(network(points[rank::size].to(device)), labels[rank::size].to(device)).backward()
        optimizer.step()
    say(rank=rank, parameters=on_host(torch.nn.utils.parameters_to_vector(network.parameters())),
        device=str(next(network.parameters()).device))
    dist.destroy_process_group()


class Counting(torch.nn.Module):
    """A network whose buffer is the running mean of its outputs."""

    def __init__(self, network):
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, points):
        outputs = self.network(points)
        if self.training:
            self.mean += 0.5 * (outputs.detach().mean(0) - self.mean)
        return outputs


def five_calls(scheme, kind="float32"):
    """Takes the steps of `script_cases.reference` by the five calls, with a module of the type `kind`; the second half of them
    calls `synchronize`."""
    device = far_device()
    job = syncopate.init(scheme=scheme)
    points, labels, network = scripts.problem()
    network = Counting(network).to(device, getattr(torch, kind))
    if job.rank == 1:
        for parameter in network.parameters():
            parameter.data.zero_()
    job.broadcast_parameters(network)
    data = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=scripts.SAMPLES)
    optimizer = job.DistributedOptimizer(scripts.sgd(network), network)
    for step in range(scripts.STEPS):
        for inputs, targets in data:
            optimizer.zero_grad()
            outputs = network(inputs.to(device, getattr(torch, kind)))
            functional.cross_entropy(outputs.float(), targets.to(device)).backward()
            if step >= scripts.STEPS // 2:
                optimizer.synchronize()
            optimizer.step(weight=len(inputs))
    optimizer.align()
    sum_of_ranks = job.allreduce(torch.full((3,), float(job.rank)).to(device))
    optimizer.finish()
    say(rank=job.rank, parameters=on_host(torch.nn.utils.parameters_to_vector(network.parameters())),
        mean=on_host(network.mean), sum=on_host(sum_of_ranks), device=str(network.mean.device))


if __name__ == "__main__":
    run_calls(globals())
