"""Statistics of the workers of a job."""
import json
import time

import torch

_COLUMNS = {  # of the table: heading, format of a value
    "rank": ("worker", "{}"), "steps": ("steps", "{}"), "samples": ("samples", "{}"), "rounds": ("rounds", "{}"),
    "seconds": ("seconds", "{:.1f}"), "samples_per_second": ("samples/s", "{:.1f}"),
    "computing_time_ratio": ("computing", "{:.1%}"), "communication_ratio": ("communicating", "{:.1%}"),
    "wait_ratio": ("waiting", "{:.1%}"), "bytes_sent": ("bytes sent", "{}")}


class Summary(dict):
    """`workers` is a list of dicts, one per worker, by rank; the other entries are totals. `str` formats it as a table.

    Entries of a worker: `steps`, `samples`, synchronization `rounds`, `seconds` of training, `samples_per_second`; the
    fractions of these seconds in `computing_time_ratio` (data, forward, backward and local update),
    `communication_ratio` and `wait_ratio`; `bytes_sent`. The fractions are None before the first round, and in a job of
    one worker, which has no rounds.
    """

    def __str__(self):
        rows = [[heading for heading, _ in _COLUMNS.values()]]
        rows += [[_cell(worker[name], form) for name, (_, form) in _COLUMNS.items()] for worker in self["workers"]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def summary_of(workers):
    """Makes the summary of some workers' rows."""
    samples, seconds = sum(worker["samples"] for worker in workers), max(worker["seconds"] for worker in workers)
    return Summary(
        workers=workers,
        steps=sum(worker["steps"] for worker in workers),
        samples=samples,
        seconds=seconds,
        samples_per_second=samples / seconds if seconds > 0 else 0.0)


def row_of(rank, steps, samples, rounds, seconds, event):
    """event: the values that this worker has logged for its last synchronization round (workers/N.jsonl), or None."""
    seconds = event["training_seconds"] if event else seconds

    def share(name):
        return event[name] / seconds if event and seconds > 0 else None

    computing = None if share("compute_seconds") is None else share("data_seconds") + share("compute_seconds")
    return {"rank": rank, "steps": steps, "samples": samples, "rounds": rounds, "seconds": seconds,
            "samples_per_second": samples / seconds if seconds > 0 else 0.0, "computing_time_ratio": computing,
            "communication_ratio": share("communicate_seconds"), "wait_ratio": share("wait_seconds"),
            "bytes_sent": event["bytes_sent"] if event else 0}


def gathered(group, row):
    """Gathers the rows of all members of a group, which call this together."""
    text = json.dumps(row).encode()
    longest = int(group.allreduce(torch.tensor([len(text)]), "max"))
    padded = torch.tensor(list(text.ljust(longest)), dtype=torch.uint8)
    return [json.loads(bytes(each.tolist())) for each in group.allgather(padded)]


def _cell(value, form):
    return "-" if value is None else form.format(value)


class Progress:
    """The steps, rounds and samples so far, and the schedulers that follow them. It does not refer to the optimizer,
    which would otherwise live as long as the training."""

    def __init__(self, on_round):
        self.schedulers = []
        self.event = None  # of the last round
        self.since = time.monotonic()
        self.steps = self.own_samples = self.rounds = 0
        self.round = 0  # the last round that this worker has seen
        self.alignments = 0  # calls of `align`, which all workers make together
        self.samples = 0  # of all workers, in this job
        self.earlier_samples = 0  # of the job that this one continues
        self.adds_own = False  # True: adds the samples of each step, because totals of all workers arrive rarely
        self.loop_has_ended = False  # the loops of other workers may continue
        self._on_round = on_round

    @property
    def all_samples(self):
        return self.earlier_samples + self.samples

    def take_round(self, event):
        self.event = event
        self.rounds += 1
        self.round = event["round"]
        self.samples = max(self.samples, event["samples"])
        if self._on_round is not None:
            self._on_round(event)

    def took_step(self, weight, is_in_round):
        """is_in_round: this worker has synchronized in the step, so the total already includes the samples of the
        step."""
        self.steps += 1
        self.own_samples += weight
        self.samples += weight if self.adds_own and not is_in_round else 0
        self.follow()

    def follow(self):
        """Advances schedulers to the samples so far."""
        self.follow_to(self.samples)

    def follow_to(self, samples):
        """Advances schedulers to this number of samples of all workers in this job."""
        for scheduler in self.schedulers:
            scheduler.follow(self.earlier_samples + samples)
