"""Joins a process to its job, through its launcher or through the store of torch.distributed.

With the store, rank 0 runs the coordinator in a thread. It passes the key of the job in a file to the other ranks of
its host: any process that reaches the port of torch's store, also one of another user, can read the store.
"""
import contextlib
import ctypes
import functools
import ipaddress
import os
import pathlib
import re
import secrets
import socket
import stat
import sys
import tempfile
import threading
import weakref

from torch import distributed

from syncopate_torch.core import library
from syncopate_torch.core.arguments import seconds
from syncopate_torch.core.errors import ConfigError, Error
from syncopate_torch.core.launch import warn_without_effect
from syncopate_torch.core.process import after_waits
from syncopate_torch.training.job import Job


def init(scheme=None, options=None, timeout=None):
    """Joins the job for which a launcher (`syncopate run`, mpirun, srun, torchrun) has started this process.

    Waits until all workers of the job have joined; workers on several hosts find each other by MASTER_ADDR and
    MASTER_PORT. Without a launcher the process is a job of one worker, which opens no connection and starts no thread.
    A further call without arguments returns the job of this process.

    scheme:  name of the scheme; the command line of `syncopate run` may give it instead; else "ssgd".
    options: options of `syncopate run` by their names, such as {"local-steps": 4}.
    timeout: longest wait for other workers, in seconds, in collectives of all workers [half an hour].
    Errors:  ConfigError for options that contradict each other or the command line, and for another timeout in a
             process that is in a job already; those of the connection.
    """
    global _latest
    timeout = seconds("timeout", timeout)
    current = current_job()
    if scheme is None and options is None and current is not None:
        if timeout not in (0, current.timeout):
            raise ConfigError(f"this process is in its job already, which it joined with timeout={current.timeout:g}, "
                              f"found timeout={timeout:g}; pass it to the first call of init")
        return current
    job = job_across_hosts(scheme, options, timeout) or Job(scheme, options, timeout=timeout)
    _latest = weakref.ref(job)
    return job


def current_job():
    """Returns the last result of `init`, unless this process has left that job; else None."""
    job = _latest and _latest()
    return job if job is not None and job.leave.alive else None


_latest = None


_GLANCE = 0.1  # seconds; Ctrl-C is handled in between

_closing = set()  # threads


def close_later(host):
    """Frees a coordinator once every worker has left its job; the process ends only after that. A worker may stay in
    the job as long as it keeps a process group, even after this one has left."""
    thread = threading.Thread(target=_close, args=[host], name="syncopate host", daemon=True)
    try:
        _closing.add(thread)
        thread.start()
    except RuntimeError:  # no new threads can start at the end of the process
        _closing.discard(thread)
        library.call("host_close", host)


def _close(host):
    library.call("host_close", host)
    _closing.discard(threading.current_thread())


def _wait():
    for thread in list(_closing):
        while thread.is_alive():
            thread.join(_GLANCE)


# Registered first: Python calls finalizers in reverse order, so this one runs after those of all jobs.
weakref.finalize(close_later, _wait)


_NAME = re.compile(r"[0-9a-f]{32}")


def folder_of_user():
    """Returns a folder that only this user may read. Errors: ConfigError if something else has its name."""
    folder = pathlib.Path(tempfile.gettempdir(), f"syncopate-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ConfigError(f"ranks find each other in {folder}, which must be a folder that only this user may read: remove it, or "
                          "set TMPDIR to another folder")
    return folder


def identity_of_folder():
    """Returns a text that is equal on ranks that see the same folder; ranks of one host in separate containers may
    not."""
    facts = folder_of_user().stat()
    return f"{facts.st_dev}:{facts.st_ino}"


def leave_key_file(text):
    """Writes a new file and returns its name in the folder."""
    name = secrets.token_hex(16)
    descriptor = os.open(folder_of_user() / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def read_key_file(name):
    """Reads a file that another rank has written. Errors: ConfigError for a name that no rank has written."""
    path = folder_of_user() / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise ConfigError(f"the store of torch.distributed names {name!r:.80}, which no rank of this user has left in "
                          f"{folder_of_user()}: another process writes into the store of this job; choose another MASTER_PORT")
    return path.read_text(encoding="utf-8")


def remove_key_file(name):
    (folder_of_user() / name).unlink(missing_ok=True)


_COORDINATOR = "syncopate/coordinator"  # its key in the store

_jobs = 0

# Variables that the initialization env:// of torch.distributed needs.
_OF_ENV = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}

# The job of the default process group, if that has this backend.
_job_of_default = weakref.WeakSet()


def job_of_group(store, rank, size):
    """Returns the job of a process group, and the ranks of its members in the job.

    The default group uses the job that the script or `syncopate run` has made, or makes one; other groups consist of
    its workers. If the default group has another backend, a group makes its own job.
    Errors: ConfigError; those of the connection.
    """
    if rank == 0 and current_job() is None:  # otherwise the script uses the five calls
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
    """Joins the job of ranks that may be on several hosts and find each other as in torch.distributed: by RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT, from any launcher. Returns None if they are on one host, or are not
    numbered."""
    if "SYNCOPATE_COORDINATOR" in os.environ:
        return None
    _expect_whole_env()
    if not _OF_ENV.issubset(os.environ):
        return None
    if os.environ["WORLD_SIZE"] in ("1", os.environ.get("LOCAL_WORLD_SIZE")):
        return None
    from torch.distributed.rendezvous import rendezvous  # noqa: PLC0415 (torch may be built without it)

    store, rank, size = next(rendezvous("env://"))
    global _jobs
    number = _jobs  # a store may serve several jobs of this process
    # The run folder of the job is complete once every worker has left.
    close = functools.partial(library.call, "host_close")
    job = _join_by_store(distributed.PrefixStore(f"syncopate-job-{number}", store), rank, size, close, scheme, options, timeout)
    _jobs = number + 1  # not after a failed join: the other ranks may still wait in that job
    return job


def _expect_whole_env():
    """Errors: ConfigError where only some of the variables are set that number the ranks of several processes."""
    size = os.environ.get("WORLD_SIZE", "1")
    if size == "1" or "LOCAL_WORLD_SIZE" in os.environ:
        return
    lacking = sorted(_OF_ENV - set(os.environ))
    if lacking:
        raise ConfigError(f"the environment numbers the ranks of several processes, but lacks {', '.join(lacking)}: set "
                          "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or start the script by syncopate run or torchrun")
    rank = os.environ["RANK"]
    if not (size.isdecimal() and rank.isdecimal() and int(rank) < int(size)):
        raise ConfigError(f"expected RANK from 0 on below WORLD_SIZE, found RANK={rank} and WORLD_SIZE={size}")


def _join_by_store(store, rank, size, close, scheme=None, options=None, timeout=0.0):
    """Joins a job that rank 0 coordinates; `close` is called with the coordinator when this worker leaves."""
    hosts = _said_by_all(store, "host", rank, size, _network_here())
    several = len(set(hosts)) > 1
    address = _address_here(hosts, store) if several else "127.0.0.1:0"
    key_file = os.environ.get("SYNCOPATE_KEY_FILE", "").encode() or None
    if len(set(_said_by_all(store, "encrypted", rank, size, str(key_file is not None)))) > 1:
        raise ConfigError("SYNCOPATE_KEY_FILE is set on some ranks of the job: set it on all, or on none")
    unencrypted = int(several and key_file is None)
    in_file = not several and key_file is None and len(set(_said_by_all(store, "folder", rank, size, identity_of_folder()))) == 1
    host = None
    if rank == 0:
        if unencrypted:
            print(f"syncopate: SYNCOPATE_UNENCRYPTED=1: what the job sends between the hosts ({_names(hosts)}) travels in clear: values, "
                  "and at the start its key", file=sys.stderr, flush=True)
        own = library.HostOptions(size=ctypes.sizeof(library.HostOptions), address=address.encode(), unencrypted=unencrypted,
                                  key_file=key_file)
        host = library.made("host_open", size, ctypes.byref(own))
        shown = library.call("host_coordinator", host).decode()
        if key_file is None:  # which every rank has, and nobody else
            shown += f" {library.call('host_key', host).decode()}"
        shown = leave_key_file(shown) if in_file else shown
        store.set(_COORDINATOR, shown)
    entry = library.Entry(size=ctypes.sizeof(library.Entry), rank=rank, worker_count=size, local_rank=hosts[:rank].count(hosts[rank]),
                          address=address.encode(), unencrypted=unencrypted, key_file=key_file)
    try:
        job = _joined(store, entry, lambda: Job(scheme, options, entry, timeout), in_file)
    finally:  # every rank has joined, or this one has failed
        if rank == 0 and in_file:
            remove_key_file(shown)
    _forget(store, rank)
    if host is not None:
        leave = job.leave
        job.leave = weakref.finalize(job, _leave_and_close, leave, close, host, os.getpid())
    return job


def _joined(store, entry, join, in_file=False):
    """Joins the job of the coordinator that the store names, directly or through a file with the key. A store that
    outlives an attempt, such as torchrun's when it restarts ranks, may still name the coordinator of the previous
    attempt: if that does not answer and rank 0 has meanwhile named another one, the join is repeated.
    Errors: those of the connection."""
    while True:
        named = store.get(_COORDINATOR)
        try:
            entry.coordinator, *key = (read_key_file(named.decode()).encode() if in_file else named).split()
            entry.key = key[0] if key else None
            return join()
        except Error:
            if not _names_another(store, named):
                raise


def _names_another(store, coordinator):
    with contextlib.suppress(RuntimeError):  # the store has ended
        return store.get(_COORDINATOR) != coordinator
    return False


def _forget(store, rank):
    """Removes the entries from the store for ranks that restart: every rank has joined, and has read all of them."""
    with contextlib.suppress(RuntimeError):  # a store without delete
        for name in ("host", "encrypted", "folder"):
            store.delete_key(f"syncopate/{name}/{rank}")
        if rank == 0:
            store.delete_key(_COORDINATOR)


@after_waits
def _leave_and_close(leave, close, host, process):
    if os.getpid() != process:
        return  # forked: the coordinator's thread does not exist here
    try:
        leave()
    finally:
        close(host)


def _network_here():
    """Returns the name of this host and identifiers of its network: hosts may have the same name, and containers of one
    host may have separate networks."""
    words = [socket.gethostname()]
    with contextlib.suppress(OSError):
        words.append(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with contextlib.suppress(OSError):
        words.append(os.readlink("/proc/self/ns/net"))
    return " ".join(words)


def _said_by_all(store, name, rank, size, mine):
    """Exchanges a text between all ranks through the store; returns the texts by rank."""
    store.set(f"syncopate/{name}/{rank}", mine)
    return [store.get(f"syncopate/{name}/{other}").decode() for other in range(size)]


def _names(hosts):
    return ", ".join(sorted(each.split()[0] for each in set(hosts)))


def _address_here(hosts, store):
    """Returns the address at which the host of MASTER_ADDR, or of the store, reaches this host. Errors: ConfigError if
    there is no key and the user has not declared the network trusted, and if other hosts cannot reach this one."""
    names = _names(hosts)
    if not os.environ.get("SYNCOPATE_KEY_FILE") and os.environ.get("SYNCOPATE_UNENCRYPTED") != "1":
        raise ConfigError(f"the ranks are on several hosts ({names}), and there is no key to encrypt connections between them: "
                          "make one by `syncopate key new FILE`, copy it to each host, and set SYNCOPATE_KEY_FILE=FILE; or set "
                          "SYNCOPATE_UNENCRYPTED=1 where you trust the network")
    master = os.environ.get("MASTER_ADDR") or _host_of(store)
    if master is None:
        raise ConfigError(f"the ranks are on several hosts ({names}), and the store of torch.distributed has no address: "
                          "set MASTER_ADDR on all ranks to that of one of the hosts")
    own = ipaddress.ip_address(_address_towards(master))
    if own.is_loopback and len({each.partition(" ")[2] for each in hosts}) > 1:  # one network may have several names
        raise ConfigError(f"{master!r} is a loopback address on this host, so the ranks on other hosts ({names}) cannot reach "
                          "it: set MASTER_ADDR to an address in their network, or take the name out of the line of 127.0.1.1 "
                          "in /etc/hosts")
    return f"[{own}]:0" if own.version == 6 else f"{own}:0"


def _host_of(store):
    """Returns the host of a TCPStore; None for another store."""
    while isinstance(store, distributed.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


def _address_towards(host):
    """Returns the address of this host on the route to another one. Errors: ConfigError if there is no route."""
    with contextlib.suppress(socket.gaierror):
        for family, kind, _, _, address in socket.getaddrinfo(host, 1, type=socket.SOCK_DGRAM):  # any port
            with contextlib.suppress(OSError), socket.socket(family, kind) as route:
                route.connect(address)  # sends nothing
                return route.getsockname()[0]
    raise ConfigError(f"this host finds no way to {host!r}: set MASTER_ADDR on all ranks to an address that it reaches")
