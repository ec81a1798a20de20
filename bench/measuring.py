"""The parts that all suites share: rounds, medians with their spread, tables, the machine."""
import dataclasses
import datetime
import os
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Contestant:
    """One side of a comparison. `measure()` runs it once and returns its figures by name."""

    name: str
    measure: object


def interleave(contestants, rounds, say=print):
    """Runs all contestants in turn, `rounds` times, so that a temporary slowdown of the machine
    affects all of them. Returns {contestant: {figure: [values]}}."""
    results = {contestant.name: {} for contestant in contestants}
    for number in range(1, rounds + 1):
        for contestant in contestants:
            figures = contestant.measure()
            for figure, value in figures.items():
                results[contestant.name].setdefault(figure, []).append(value)
            shown = ", ".join(f"{figure} {short(value)}" for figure, value in figures.items())
            say(f"  {number}/{rounds}  {contestant.name}: {shown}")
    return results


def short(value):
    """Returns the number with three significant digits and grouped thousands."""
    if value == 0:
        return "0"
    digits = max(0, 2 - len(str(int(abs(value)))) + 1)
    return f"{value:,.{digits}f}"


def with_spread(values):
    """Returns the median, with the minimum and maximum if there are several values."""
    middle = short(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({short(min(values))} to {short(max(values))})"


def table(header, rows):
    """Returns a Markdown table; all columns but the first are aligned to the right."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, marks, *rows])


def speed(result):
    return {"images/s": result["images_per_second"]}


def comparison(results, figure, baseline=None):
    """Returns a table of one figure of every contestant, relative to the contestant `baseline`."""
    header = ["", figure] + (["relative"] if baseline else [])
    rows = []
    for name, figures in results.items():
        values = figures[figure]
        row = [name, with_spread(values)]
        if baseline:
            row.append(f"{statistics.median(values) / statistics.median(results[baseline][figure]):.2f}")
        rows.append(row)
    return table(header, rows)


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit():
    """Returns the measured commit, with a mark if files differ from it."""

    def git(*arguments):
        # Git reads another user's repository only where this option allows it.
        command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + (", with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def heading(title, command):
    """Returns the head of a page of results: command, machine, commit and date."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return "\n".join(
        [
            f"# {title}",
            "",
            f"- command: `{command}`",
            f"- machine: {cpu()}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}",
            f"- commit: {commit()}",
            f"- date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
            "",
            "Medians, with the least and the greatest value in brackets.",
            "",
        ]
    )
