"""The segments of shared memory that processes have mapped."""
import pathlib


def maps_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    except OSError:  # it has ended
        return []


def segments_of(*pids):
    """Returns the inodes of the segments that these processes have mapped."""
    return {line.split()[4] for pid in pids for line in maps_of(pid) if "memfd:syncopate" in line}
