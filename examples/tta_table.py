#!/usr/bin/env python3
"""Prints a table of the times to accuracy of finished runs.

Usage: tta_table.py SUMMARY...
   SUMMARY   the summary.json of a run; those that never reached their target accuracy come last
"""
import json
import pathlib
import sys

COLUMNS = ("scheme", "workers", "time to accuracy", "speed-up", "best accuracy", "samples/s", "computing")


def row(summary, slowest):
    seconds = summary.get("time_to_target_seconds")
    computing = [worker["computing_time_ratio"] for worker in summary["workers"]]
    return (
        summary["scheme"],
        str(len(summary["workers"])),
        f"{seconds:.2f} s" if seconds is not None else "not reached",
        f"{slowest / seconds:.2f} x" if seconds else "",
        f"{summary['best_accuracy']:.4f}",
        f"{summary['throughput']:,.0f}",
        f"{sum(computing) / len(computing):.1%}",
    )


def main(paths):
    summaries = [json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in paths]
    if not summaries:
        sys.exit("tta_table.py: expected the summary.json of some runs, found none: did no run finish?")
    times = [one["time_to_target_seconds"] for one in summaries if one.get("time_to_target_seconds") is not None]
    never = float("inf")
    summaries.sort(key=lambda one: one["time_to_target_seconds"] if one.get("time_to_target_seconds") is not None else never)
    rows = [COLUMNS, *(row(one, max(times, default=0)) for one in summaries)]
    widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS))]
    for cells in rows:
        print(f"{cells[0]:<{widths[0]}}  " + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
