"""The workers of a job, as PyTorch Lightning knows its processes."""
from syncopate_torch.lightning_package import ClusterEnvironment


class SyncopateEnvironment(ClusterEnvironment):
    """The workers of a job, as Lightning asks for them."""

    def __init__(self, job):
        self._job = job

    @property
    def creates_processes_externally(self):
        return True

    @property
    def main_address(self):
        return "127.0.0.1"

    @property
    def main_port(self):
        return 0

    @staticmethod
    def detect():
        return False

    def world_size(self):
        return self._job.size

    def set_world_size(self, size):
        """The launcher decides."""

    def global_rank(self):
        return self._job.rank

    def set_global_rank(self, rank):
        """The launcher decides."""

    def local_rank(self):
        return self._job.local_rank

    def node_rank(self):
        return 0
