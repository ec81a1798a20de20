"""Scripts for hosts_test.py and process_group_test.py: hosts_scripts.py NAME [ARGUMENT...]."""
import hashlib

import scripts
import syncopate_torch
import torch
from torch import distributed as dist
from torch.nn import functional

from calls import run_calls, say
from device_scripts import far_device


def sends_known_values():
    """Rank 0 sends values by which a recording of the network is searched."""
    dist.init_process_group("syncopate")
    values = torch.full((10000,), 1.2345678 if dist.get_rank() == 0 else 0.0)
    dist.broadcast(values, src=0)
    say(sum=values.double().sum().item())


def trained(scheme, aggregate, *options, device="cpu"):
    """Trains by a scheme into the run folder of this name. Returns a digest of the model's bits, and the number of rounds."""
    rounds = []
    points, labels, network = scripts.problem()
    network = torch.nn.Sequential(torch.nn.BatchNorm1d(points.shape[1]), network).to(device)
    given = {"aggregate": aggregate, "run-dir": "-".join((scheme, aggregate, *options))}
    with syncopate_torch.init(scheme, {**given, **dict(option.split("=") for option in options)}) as job:
        loader = job.partition_dataset(torch.utils.data.TensorDataset(points, labels), batch_size=8 * job.size)
        optimizer = job.DistributedOptimizer(torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), network,
                                             on_round=rounds.append)
        for _ in range(6):
            for inputs, targets in loader:
                optimizer.zero_grad()
                functional.cross_entropy(network(inputs.to(device)), targets.to(device)).backward()
                optimizer.step()
        optimizer.finish()
    values = torch.cat([value.flatten() for value in network.state_dict().values() if value.is_floating_point()])
    return {"bits": hashlib.sha256(values.detach().cpu().numpy().tobytes()).hexdigest(), "rounds": len(rounds)}


def by_group_of_torch(*calls):
    """Trains over a group of Gloo. A call: SCHEME/AGGREGATE/OPTION=VALUE/..."""
    dist.init_process_group("gloo")
    for call in calls:
        say(trained=call, **trained(*call.split("/")))
    dist.barrier()
    dist.destroy_process_group()


def by_group_of_a_device(*calls):
    """Trains on the far device over a group that takes only its tensors, as NCCL takes only those of CUDA; then says why a
    module on the CPU is refused."""
    device = far_device()
    dist.Backend.register_backend("standin", lambda store, rank, size, timeout: StandIn(store, rank, size, timeout),
                                  devices=[device.type])
    dist.init_process_group("standin")
    for call in calls:
        summed = len(StandIn.sums)
        facts = trained(*call.split("/"), device=device)
        say(trained=call, sums=len(StandIn.sums) - summed, **facts)
    try:
        trained("ssgd", "torch", device=device if dist.get_rank() == 0 else "cpu")
    except syncopate_torch.ConfigError as error:
        say(refused=str(error))


class StandIn(dist.ProcessGroup if torch.__version__.startswith("2") else object):
    """A group that, as NCCL, refuses tensors of the CPU and such as are not contiguous. Gloo computes its sums."""

    sums = []  # the lengths of all sums, in the order of their submission

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self):
        return "standin"

    def allreduce(self, tensors, options):
        tensor, = tensors
        if tensor.device.type == "cpu":
            raise RuntimeError("No backend type associated with device type cpu")
        if not tensor.is_contiguous():
            raise RuntimeError("tensors must be contiguous")
        self.sums.append(tensor.numel())
        on_host = tensor.cpu()
        work = self._gloo.allreduce([on_host], options)
        work.wait()
        tensor.copy_(on_host)
        return work


def without_a_group():
    """Asks for sums by torch without a default group, and with one whose backend is the job itself."""
    reasons = []
    for begin in (lambda: None, lambda: dist.init_process_group("syncopate")):
        begin()
        try:
            trained("ssgd", "torch")
        except syncopate_torch.ConfigError as error:
            reasons.append(str(error))
    say(reasons=reasons)


if __name__ == "__main__":
    run_calls(globals())
