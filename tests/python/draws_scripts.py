"""Training scripts for draws_test.py: draws_scripts.py NAME [ARGUMENT...]. Each prints what the test checks."""
import random

import torch
import syncopate_torch as syncopate
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from calls import run_calls, say

SAMPLES = 48
WEIGHTS = [0.0] * 8 + [1.0] * 8 + [3.0] * 32


class Augmented(torch.utils.data.Dataset):
    """Draws random numbers of torch and of Python for each sample, as an augmentation does."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        return torch.tensor([torch.randint(10**6, ()).item(), random.randrange(10**6)])


def augmentations(persistent, *given):
    """Loads augmented samples after all workers have set the same seed. given: the loader has its own generator."""
    torch.manual_seed(1)
    job = syncopate.init()
    options = {"generator": torch.Generator().manual_seed(5)} if given else {}
    data = job.partition_dataset(Augmented(), 8, num_workers=2, persistent_workers=persistent == "1", **options)
    epochs = [[pair for batch in data for pair in batch.tolist()] for _ in range(2)]
    say(rank=job.rank, epochs=epochs, later=torch.randint(10**6, ()).item())


def weighted(way, order):
    """Draws samples by weights for three epochs; `way` says how the loader is made."""
    torch.manual_seed(7)
    job = syncopate.init(options={"data-order": order})
    dataset = TensorDataset(torch.arange(SAMPLES))
    sampler = WeightedRandomSampler(WEIGHTS, SAMPLES)
    data = {"loader": lambda: job.partition_dataset(dataset, 8, sampler=sampler),
            "sampler": lambda: DataLoader(dataset, batch_size=4, sampler=job.sampler(sampler)),
            "weights": lambda: DataLoader(dataset, batch_size=4, sampler=job.sampler(dataset, weights=WEIGHTS)),
            "batches": lambda: DataLoader(dataset, batch_sampler=job.sampler(sampler, batch_size=8))}[way]()
    say(rank=job.rank, epochs=[[index for [batch] in data for index in batch.tolist()] for _ in range(3)])


def of_other_weights():
    """Worker 1 passes other weights than worker 0."""
    job = syncopate.init()
    job.sampler(WeightedRandomSampler([1.0, 1.0 + job.rank], 2))


def stops(*file):
    """Draws for two epochs and saves a state in the second one, or resumes from the state in `file` to the end."""
    torch.manual_seed(int(bool(file)))  # with `file` another seed, which the state replaces
    job = syncopate.init()
    if file:
        job.load_state_dict(torch.load(file[0].format(job.rank)))
    data = job.partition_dataset(TensorDataset(torch.arange(SAMPLES)), 8, sampler=WeightedRandomSampler(WEIGHTS, SAMPLES))
    drawn = []
    for step, [batch] in enumerate(batch for _ in range(1 if file else 2) for batch in data):
        drawn.append(batch.tolist())
        if not file and step == 7:  # in the second epoch
            torch.save(job.state_dict(), f"draws.{job.rank}")
    say(rank=job.rank, drawn=drawn)


if __name__ == "__main__":
    run_calls(globals())
