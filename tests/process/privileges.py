"""Finds out what this machine lets a test do: other users, namespaces, mounts, debuggers, Slurm.

Each function tries its privilege once, because being root or having a capability does not decide it: seccomp, a chroot or
a kernel setting may forbid it, and a user namespace may allow it to a plain user. The function returns the words that start
a program with the privilege, or one line that says why the machine does not grant it. Run as a program, this file prints
the result of every function.
"""
import dataclasses
import functools
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import tempfile
import unittest

import threads

NOBODY = 65534
LIMIT = 30  # seconds after which an attempt has failed

# In a chroot no path leads to the root of the file system, so `unshare` cannot make that mount private. PRIVATE makes all
# other mounts private.
IN_CHROOT = ("unshare", "--mount", "--propagation", "unchanged")
PRIVATE = 'while read -r _ _ _ _ place _; do mount --make-private "$place" 2>/dev/null; done < /proc/self/mountinfo; '
AS_ROOT = ("unshare", "--map-root-user")


@dataclasses.dataclass(frozen=True)
class Found:
    """The words that start a program with a privilege, or the reason why the machine does not grant it."""

    words: tuple = ()
    lacks: str = ""

    def require(self):
        """Returns the words. Without the privilege it skips the running test, which in CI is a failure (`script/test`)."""
        if self.lacks:
            raise unittest.SkipTest(self.lacks)
        return list(self.words)


def attempt(*words):
    """Runs a command. Returns one line that says why it fails; empty if it succeeds."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, errors="replace", timeout=LIMIT, check=False)  # fmt: skip
    except OSError as error:
        return f"{words[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"{words[0]} did not end within {LIMIT} s"
    if done.returncode == 0:
        return ""
    return " ".join(done.stderr.split()) or f"{words[0]} ended with {done.returncode}"


def first_of(what, candidates, fails):
    """Finds the first of `candidates` for which `fails` returns no reason."""
    reasons = []
    for words in candidates:
        reason = fails(words)
        if not reason:
            return Found(words=tuple(words))
        reasons.append(reason)
    return Found(lacks=f"no {what}: {'; '.join(dict.fromkeys(reasons))}")


def mount_fails(words, place):
    """Mounts a file system below `place`, which must not be visible outside. Returns why that fails, or nothing."""
    try:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            reason = attempt(*words, "sh", "-c", 'mount -t tmpfs -o size=4k tmpfs "$0" && : > "$0/mounted"', folder)
            if (pathlib.Path(folder) / "mounted").exists():
                subprocess.run(["umount", folder], timeout=LIMIT, check=True)
                return "what is mounted there is seen outside"
            return reason
    except OSError as error:
        return f"{place}: {error.strerror}"


@functools.cache
def mounts(place=None):
    """A mount namespace in which a test can mount at or below `place`; by default the folder for temporary files."""
    candidates = (
        ("unshare", "--mount"),
        (*AS_ROOT, "--mount"),
        (*IN_CHROOT, "sh", "-c", PRIVATE + 'exec "$@"', "sh"),
    )
    return first_of("mounts of its own", candidates, lambda words: mount_fails(words, place))


@functools.cache
def processes():
    """A PID namespace with its own /proc, as a container has."""
    options = ("--pid", "--fork", "--kill-child")
    mount = PRIVATE + 'mount --make-private /proc && mount -t proc proc /proc && exec "$@"'
    candidates = (
        ("unshare", *options, "--mount-proc"),
        (*AS_ROOT, *options, "--mount-proc"),
        (*IN_CHROOT, *options, "sh", "-c", mount, "sh"),
    )
    first = '[ $$ = 1 ] && read -r pid _ < /proc/self/stat && [ "$pid" = 1 ]'
    return first_of("processes of its own", candidates, lambda words: attempt(*words, "sh", "-c", first))


@functools.cache
def network():
    """A network namespace, without any network."""
    return first_of("network of its own", (("unshare", "--net"), (*AS_ROOT, "--net")), lambda words: attempt(*words, "true"))


@functools.cache
def linked_networks():
    """Network namespaces that are connected by links of limited bandwidth. The result has no words."""
    script = (
        "ip link add one type veth peer name other && ip link add switch type bridge && "
        "tc qdisc add dev one root tbf rate 1gbit burst 64kb latency 100ms && nsenter --net=/proc/self/ns/net true"
    )
    reason = attempt("unshare", "--net", "sh", "-c", script)
    return Found(lacks=reason and f"no linked networks: {reason}")


@functools.cache
def tunnels():
    """Linked networks whose hosts encrypt by WireGuard in a program of theirs. The result has no words."""
    if linked_networks().lacks:
        return linked_networks()
    if shutil.which("wireguard-go") is None or shutil.which("wg") is None:
        return Found(lacks="no WireGuard: it needs the packages wireguard-go and wireguard-tools")
    reason = attempt("unshare", "--net", "ip", "tuntap", "add", "mode", "tun", "name", "tunnel")
    return Found(lacks=reason and f"no tunnels: {reason}")


@functools.cache
def another_user(program="true"):
    """Another user, who may run `program` and own a file."""
    words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # A shell runs the program with the other user's rights; setpriv itself looks for programs as root.
    reason = attempt(*words, "sh", "-c", 'exec "$0" --version', program)
    if not reason:
        try:
            with tempfile.NamedTemporaryFile() as file:
                os.chown(file.name, NOBODY, NOBODY)
        except OSError as error:
            reason = f"chown: {error.strerror}"
    return Found(lacks=f"no other user: {reason}") if reason else Found(words=words)


@functools.cache
def unreadable_programs():
    """Programs whose file cannot be read: other processes of the user may not read their memory. The result has no words."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = unreadable_copy(shutil.which("cat"), pathlib.Path(folder))
            with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                process.stdin.write(b"started\n")
                process.stdin.flush()
                process.stdout.readline()
                return Found(lacks="this user reads the memory of any program" if may_read(process.pid) else "")
    except OSError as error:
        return Found(lacks=f"no program that only runs: {error.strerror}")


def may_read(pid):
    """Returns True if this user may read the memory of a process."""
    try:
        os.readlink(f"/proc/{pid}/fd/0")
    except PermissionError:
        return False
    return True


def unreadable_copy(program, folder):
    copy = folder / pathlib.Path(program).name
    shutil.copyfile(program, copy)
    copy.chmod(0o111)
    return copy


@functools.cache
def debugger():
    """Stopping threads of other processes. The result has no words."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        try:
            threads.stop_thread(process.pid)
        except OSError as error:
            return Found(lacks=f"no debugger: ptrace: {os.strerror(error.errno)}")
        finally:
            process.kill()
    return Found()


@functools.cache
def descriptors(count):
    """`count` open files in a process: raises the limit of this process and its children. The result has no words."""
    own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (own, most) and most < count:
        return Found(lacks=f"a process may open {most} files, and {count} are needed (ulimit -n)")
    if resource.RLIM_INFINITY != own < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))
    return Found()


@functools.cache
def slurm():
    """A Slurm that runs jobs of this user. The result has no words."""
    import slurm as cluster

    try:
        with cluster.Slurm():
            return Found()
    except cluster.Unavailable as unavailable:
        return Found(lacks=str(unavailable))


def shared_memory():
    """The size of /dev/shm, which both MPIs use and Syncopate does not. The result's words are the size."""
    try:
        size = os.statvfs("/dev/shm")
    except OSError as error:
        return Found(lacks=f"no /dev/shm: {error.strerror}")
    return Found(words=(f"{size.f_blocks * size.f_frsize >> 20} MB",))


def surroundings():
    """Returns {what: found} for every privilege that a test of this folder requires."""
    return {
        "mounts of its own": mounts(),
        "mounts of its own on /dev/shm": mounts("/dev/shm"),
        "processes of its own (a container)": processes(),
        "a network of its own": network(),
        "linked networks": linked_networks(),
        "tunnels of WireGuard": tunnels(),
        "another user": another_user(),
        "memory that this user may not read": unreadable_programs(),
        "a debugger": debugger(),
        "1024 open files": descriptors(1024),
        "Slurm": slurm(),
        "/dev/shm": shared_memory(),
    }


def main():
    print(f"capabilities found for tests, as user {os.geteuid()} on {os.cpu_count()} processors:")
    for what, found in surroundings().items():
        how = f" ({' '.join(found.words[:4])})" if found.words else ""
        print(f"  {what}: {found.lacks or f'yes{how}'}")


if __name__ == "__main__":
    main()
