"""The ends of coordinators that are threads of this process."""
import threading
import weakref

from syncopate_torch import _c

_GLANCE = 0.1  # seconds; Ctrl-C is seen in between

_closing = set()  # threads


def close_later(host):
    """Frees a coordinator once every worker has left its job; the process ends after that. A worker may stay in a job that this
    one has left for as long as it keeps a process group."""
    thread = threading.Thread(target=_close, args=[host], name="syncopate host", daemon=True)
    try:
        _closing.add(thread)
        thread.start()
    except RuntimeError:  # at the end of the process there are no further threads
        _closing.discard(thread)
        _c.call("host_close", host)


def _close(host):
    _c.call("host_close", host)
    _closing.discard(threading.current_thread())


def _wait():
    for thread in list(_closing):
        while thread.is_alive():
            thread.join(_GLANCE)


# The first of all: Python calls them in the opposite order, so after those of all jobs.
weakref.finalize(close_later, _wait)
