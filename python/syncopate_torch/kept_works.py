"""The works of a process group, until they have ended."""
import collections
import itertools

_KEPT = 16  # of the latest works, whether or not they have ended
_KEPT_NUMBERS = 256  # of those whose result is a single number
_LOOKS = 4  # at works that may have ended, for each that comes


class KeptWorks:
    """Keeps works until they have ended, with the memory that they use. C++ of a torch that does not keep works of Python
    may also wait for one that has ended and whose last reference in Python has gone, soon after it was made. That of any
    torch asks in a backward pass for what join() has counted before the forward pass: a number, which takes no room.

    Threads: `add` one at a time; `discard` any.
    """

    def __init__(self):
        self._latest = {}  # in their order
        self._waiting = {}  # earlier ones that had not ended: a receive may stay for long
        self._numbers = collections.deque(maxlen=_KEPT_NUMBERS)

    def add(self, work):
        """Also looks at a few others, so that a script may have any number of works under way."""
        if work.is_number():
            self._numbers.append(work)
        self._latest[work] = None
        self._look_at(self._latest, len(self._latest) - _KEPT)
        self._look_at(self._waiting, len(self._waiting))

    def discard(self, work):
        """It has ended."""
        self._latest.pop(work, None)
        self._waiting.pop(work, None)

    def __iter__(self):
        return iter([*self._latest, *self._waiting])

    def _look_at(self, works, most):
        for each in list(itertools.islice(works, max(0, min(most, _LOOKS)))):
            works.pop(each, None)
            if not each.is_completed():
                self._waiting[each] = None
