"""How far a job has come, as one of its workers knows it."""
import time


class Progress:
    """The steps, rounds and samples so far, and who follows them. It knows no optimizer, which would live as long as the
    training."""

    def __init__(self, on_round):
        self.schedulers = []
        self.event = None  # of the last round
        self.since = time.monotonic()
        self.steps = self.own_samples = self.rounds = 0
        self.round = 0  # the last one that this worker has seen
        self.alignments = 0  # calls of `align`, which all workers make together
        self.samples = 0  # of all workers, in this job
        self.earlier_samples = 0  # those of the job that this one continues
        self.adds_own = False  # the samples of each step, since news of those of all are rare
        self.loop_has_ended = False  # those of others may go on
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
        if self.loop_has_ended:
            self.follow()  # at the rate of the others, whose gradients this worker applies

    def took_step(self, weight, is_in_round):
        """is_in_round: this worker has synchronized in the step, and knows the samples of all with those of the step."""
        self.steps += 1
        self.own_samples += weight
        self.samples += weight if self.adds_own and not is_in_round else 0
        self.follow()

    def follow(self):
        """Schedulers go on with the samples so far."""
        for scheduler in self.schedulers:
            scheduler.follow(self.all_samples)
