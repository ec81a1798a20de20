"""How the ranks of torch.distributed come to be workers of a job: by the store that all of them have."""
import contextlib
import ctypes
import functools
import ipaddress
import os
import pathlib
import socket
import weakref

from torch import distributed
from torch.distributed.rendezvous import rendezvous

from syncopate_torch import _c, key_file
from syncopate_torch.errors import ConfigError, Error
from syncopate_torch.hosts import close_later
from syncopate_torch.interruption import after_waits
from syncopate_torch.job import Job, current_job, init
from syncopate_torch.launched_options import warn_without_effect

_COORDINATOR = "syncopate/coordinator"  # its key in the store

_jobs = 0

# What the initialisation env:// of torch.distributed needs.
_OF_ENV = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

# Of the default process group, where that is of this backend.
_job_of_default = weakref.WeakSet()


def job_of_group(store, rank, size):
    """The job of a process group, and the ranks of its members in it.

    The default group has the job that the script or `syncopate run` has made, or makes one; other groups are among its
    workers. A group beside a default one of another backend makes a job of its own.
    Errors: ConfigError; those of the connection.
    """
    if rank == 0 and current_job() is None:  # else the script has begun the five calls
        warn_without_effect("a process group of torch.distributed")
    if not distributed.is_initialized():
        job = _default_job(store, rank, size)
        _job_of_default.clear()
        _job_of_default.add(job)
        return job, list(range(size))
    for job in _job_of_default:
        return job, [int(text) for text in _said_by_all(store, "job-rank", rank, size, str(job.rank))]
    return _join_by_store(store, rank, size, close_later), list(range(size))


def _default_job(store, rank, size):
    job = current_job() or (init() if "SYNCOPATE_COORDINATOR" in os.environ else _join_by_store(store, rank, size, close_later))
    if (job.rank, job.size) != (rank, size):
        raise ConfigError(f"this process is worker {job.rank} of {job.size} of its job, and rank {rank} of {size} of "
                          "torch.distributed; let one launcher number them, or pass rank and world_size of that job")
    return job


def job_across_hosts(scheme, options, timeout):
    """The job of ranks that may be on several hosts, and find each other as torch.distributed does: by RANK, WORLD_SIZE,
    MASTER_ADDR and MASTER_PORT, from any launcher. None: they are on one host, or nothing numbers them."""
    if "SYNCOPATE_COORDINATOR" in os.environ or not _OF_ENV.issubset(os.environ):
        return None
    if os.environ["WORLD_SIZE"] in ("1", os.environ.get("LOCAL_WORLD_SIZE")):
        return None
    store, rank, size = next(rendezvous("env://"))
    global _jobs
    number = _jobs  # a store may serve several jobs of this process
    # Its run folder is whole once every worker has left.
    close = functools.partial(_c.call, "host_close")
    job = _join_by_store(distributed.PrefixStore(f"syncopate-job-{number}", store), rank, size, close, scheme, options, timeout)
    _jobs = number + 1  # not of a job that this process did not come into: the others may still wait in it
    return job


def _join_by_store(store, rank, size, close, scheme=None, options=None, timeout=0.0):
    """A job that rank 0 coordinates: `close` gets the coordinator when this worker leaves."""
    hosts = _said_by_all(store, "host", rank, size, _network_here())
    address = "127.0.0.1:0" if len(set(hosts)) == 1 else _address_here(hosts, store)
    unencrypted = int(len(set(hosts)) > 1)
    in_file = not unencrypted and len(set(_said_by_all(store, "folder", rank, size, key_file.identity_of_folder()))) == 1
    host = None
    if rank == 0:
        own = _c.HostOptions(size=ctypes.sizeof(_c.HostOptions), address=address.encode(), unencrypted=unencrypted)
        host = _c.made("host_open", size, ctypes.byref(own))
        shown = f"{_c.call('host_coordinator', host).decode()} {_c.call('host_key', host).decode()}"
        shown = key_file.leave(shown) if in_file else shown
        store.set(_COORDINATOR, shown)
    entry = _c.Entry(size=ctypes.sizeof(_c.Entry), rank=rank, worker_count=size, local_rank=hosts[:rank].count(hosts[rank]),
                     address=address.encode(), unencrypted=unencrypted)
    try:
        job = _joined(store, entry, lambda: Job(scheme, options, entry, hosts, timeout), in_file)
    finally:  # every rank has joined, or this one has given up
        if rank == 0 and in_file:
            key_file.remove(shown)
    _forget(store, rank)
    if host is not None:
        leave = job.leave
        job.leave = weakref.finalize(job, _leave_and_close, leave, close, host, os.getpid())
    return job


def _joined(store, entry, join, in_file=False):
    """The job of the coordinator that the store names, itself or by a file (`key_file`). A store that outlives an attempt, as
    that of torchrun does where it restarts ranks, may still name the coordinator of the attempt before: while nobody answered there, rank 0 has named another one.
    Errors: those of the connection."""
    while True:
        named = store.get(_COORDINATOR)
        try:
            entry.coordinator, entry.key = (key_file.find(named.decode()).encode() if in_file else named).split()
            return join()
        except Error:
            if not _names_another(store, named):
                raise


def _names_another(store, coordinator):
    with contextlib.suppress(RuntimeError):  # the store has ended
        return store.get(_COORDINATOR) != coordinator
    return False


def _forget(store, rank):
    """Every rank has joined, and so has read what all said. Takes that out of the store, for ranks that start again."""
    with contextlib.suppress(RuntimeError):  # a store that deletes nothing
        for name in ("host", "folder"):
            store.delete_key(f"syncopate/{name}/{rank}")
        if rank == 0:
            store.delete_key(_COORDINATOR)


@after_waits
def _leave_and_close(leave, close, host, process):
    if os.getpid() != process:
        return  # forked: the coordinator's thread is missing here
    try:
        leave()
    finally:
        close(host)


def _network_here():
    """The name of this host, and what tells its network from others: hosts may have the same name, and containers of one
    host a network each."""
    words = [socket.gethostname()]
    with contextlib.suppress(OSError):
        words.append(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        words.append(os.readlink("/proc/self/ns/net"))
    return " ".join(words)


def _said_by_all(store, name, rank, size, mine):
    """What every rank says, by rank."""
    store.set(f"syncopate/{name}/{rank}", mine)
    return [store.get(f"syncopate/{name}/{other}").decode() for other in range(size)]


def _address_here(hosts, store):
    """Where this host is reached from that of MASTER_ADDR, or of the store. Errors: ConfigError, unless the user trusts the
    network, and where other hosts do not reach this one."""
    names = ", ".join(sorted(each.split()[0] for each in set(hosts)))
    if os.environ.get("SYNCOPATE_UNENCRYPTED") != "1":
        raise ConfigError(f"the ranks are on several hosts ({names}), and connections between them "
                          "are not encrypted: set SYNCOPATE_UNENCRYPTED=1 where you trust the network")
    master = os.environ.get("MASTER_ADDR") or _host_of(store)
    if master is None:
        raise ConfigError(f"the ranks are on several hosts ({names}), and the store of torch.distributed has no address: "
                          "set MASTER_ADDR on all ranks to that of one of the hosts")
    own = ipaddress.ip_address(_address_towards(master))
    if own.is_loopback and len({each.partition(" ")[2] for each in hosts}) > 1:  # names of one network may differ
        raise ConfigError(f"{master!r} is a loopback address on this host, so the ranks on other hosts ({names}) cannot reach "
                          "it: set MASTER_ADDR to an address in their network, or take the name out of the line of 127.0.1.1 "
                          "in /etc/hosts")
    return f"[{own}]:0" if own.version == 6 else f"{own}:0"


def _host_of(store):
    """The host of a TCPStore; None: it is another store."""
    while isinstance(store, distributed.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


def _address_towards(host):
    """The address of this host on the way to another one. Errors: ConfigError, where there is none."""
    with contextlib.suppress(socket.gaierror):
        for family, kind, _, _, address in socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM):  # of any port
            with contextlib.suppress(OSError), socket.socket(family, kind) as route:
                route.connect(address)  # sends nothing
                return route.getsockname()[0]
    raise ConfigError(f"this host finds no way to {host!r}: set MASTER_ADDR on all ranks to an address that it reaches")
