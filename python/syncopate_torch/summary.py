"""What the workers of a job have done so far."""
import json

import torch

_COLUMNS = {  # of the table: heading, format of a value
    "rank": ("worker", "{}"), "steps": ("steps", "{}"), "samples": ("samples", "{}"), "rounds": ("rounds", "{}"),
    "seconds": ("seconds", "{:.1f}"), "samples_per_second": ("samples/s", "{:.1f}"),
    "computing_time_ratio": ("computing", "{:.1%}"), "communication_ratio": ("communicating", "{:.1%}"),
    "wait_ratio": ("waiting", "{:.1%}"), "bytes_sent": ("bytes sent", "{}")}


class Summary(dict):
    """`workers` is a list of dicts, one a worker, by rank; the other entries are of them together. `str` makes a table
    of it.

    Of a worker: `steps`, `samples`, synchronization `rounds`, `seconds` of training, `samples_per_second`; the shares of
    these seconds in `computing_time_ratio` (data, forward, backward and local update), `communication_ratio` and
    `wait_ratio`; `bytes_sent`. Shares are None before the first round, and in a job of one worker, which has none.
    """

    def __str__(self):
        rows = [[heading for heading, _ in _COLUMNS.values()]]
        rows += [[_cell(worker[name], form) for name, (_, form) in _COLUMNS.items()] for worker in self["workers"]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows)


def summary_of(workers):
    """Of the rows of some workers."""
    samples, seconds = sum(worker["samples"] for worker in workers), max(worker["seconds"] for worker in workers)
    return Summary(
        workers=workers,
        steps=sum(worker["steps"] for worker in workers),
        samples=samples,
        seconds=seconds,
        samples_per_second=samples / seconds if seconds > 0 else 0.0)


def row_of(rank, steps, samples, rounds, seconds, event):
    """event: what this worker has logged of its last synchronization round (workers/N.jsonl), or None."""
    seconds = event["training_seconds"] if event else seconds

    def share(name):
        return event[name] / seconds if event and seconds > 0 else None

    computing = None if share("compute_seconds") is None else share("data_seconds") + share("compute_seconds")
    return {"rank": rank, "steps": steps, "samples": samples, "rounds": rounds, "seconds": seconds,
            "samples_per_second": samples / seconds if seconds > 0 else 0.0, "computing_time_ratio": computing,
            "communication_ratio": share("communicate_seconds"), "wait_ratio": share("wait_seconds"),
            "bytes_sent": event["bytes_sent"] if event else 0}


def gathered(group, row):
    """The rows of all members of a group, who call this together."""
    text = json.dumps(row).encode()
    longest = int(group.allreduce(torch.tensor([len(text)]), "max"))
    padded = torch.tensor(list(text.ljust(longest)), dtype=torch.uint8)
    return [json.loads(bytes(each.tolist())) for each in group.allgather(padded)]


def _cell(value, form):
    return "-" if value is None else form.format(value)
