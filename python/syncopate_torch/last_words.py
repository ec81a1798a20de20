"""The order of error messages."""
import contextlib
import fcntl
import os
import stat
import struct
import sys
import termios
import time

_LONGEST_WAIT = 3.0  # seconds, for a reader that has stopped
_PAUSE = 0.001


def wait_until_read():
    """Where standard error is a pipe, as under `syncopate run`, waits until its reader has taken this process's traceback:
    it is then printed before the errors of other workers, which follow from it."""
    with contextlib.suppress(OSError):  # of one that is closed
        if sys.stderr is None or not stat.S_ISFIFO(os.fstat(2).st_mode):
            return
        sys.stderr.flush()
        until = time.monotonic() + _LONGEST_WAIT
        while _unread_bytes() > 0 and time.monotonic() < until:
            time.sleep(_PAUSE)


def _unread_bytes():
    return struct.unpack("i", fcntl.ioctl(2, termios.FIONREAD, b"\0" * 4))[0]
