"""What this machine lets a test do: other users, namespaces, mounts, debuggers, Slurm.

Each function finds out by trying it once, because neither root nor a capability says it: seccomp, a chroot or a
kernel's setting may forbid it, and a user namespace may allow it to a plain user. It gives the words that start a program
with what was asked for, or why it cannot be had, in one line. Run as a program, this file prints all of it.
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
LIMIT = 30  # seconds in which an attempt must end

# In a chroot no path leads to the root of the file system, so `unshare` cannot make it private; other mounts can be.
IN_CHROOT = ("unshare", "--mount", "--propagation", "unchanged")
PRIVATE = 'while read -r _ _ _ _ place _; do mount --make-private "$place" 2>/dev/null; done < /proc/self/mountinfo; '
AS_ROOT = ("unshare", "--map-root-user")


@dataclasses.dataclass(frozen=True)
class Found:
    """The words that start a program with it, or why it is not to be had."""

    words: tuple = ()
    lacks: str = ""

    def require(self):
        """The words. Skips the running test where there are none; in CI a skipped test is a failure (`script/test`)."""
        if self.lacks:
            raise unittest.SkipTest(self.lacks)
        return list(self.words)


def attempt(*words):
    """Why this command fails, in one line; nothing if it does not."""
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
    """The first of `candidates` for which `fails` gives no reason."""
    reasons = []
    for words in candidates:
        reason = fails(words)
        if not reason:
            return Found(words=tuple(words))
        reasons.append(reason)
    return Found(lacks=f"no {what}: {'; '.join(dict.fromkeys(reasons))}")


def mount_fails(words, place):
    """Mounts a file system below `place`. It must not be seen outside."""
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
    """A mount namespace in which file systems are mounted at or below `place`; the folder for temporary files by default."""
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
    """Network namespaces, linked with each other by shaped links. It has no words of its own."""
    script = (
        "ip link add one type veth peer name other && ip link add switch type bridge && "
        "tc qdisc add dev one root tbf rate 1gbit burst 64kb latency 100ms && nsenter --net=/proc/self/ns/net true"
    )
    reason = attempt("unshare", "--net", "sh", "-c", script)
    return Found(lacks=reason and f"no linked networks: {reason}")


@functools.cache
def another_user(program="true"):
    """Another user, who may run `program` and own a file."""
    words = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # By a shell, which has that user's rights: setpriv itself still finds programs as root does.
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
    """A program whose file cannot be read keeps its memory from others of its user, as from another user. No words."""
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
    """Whether this user may look into the memory of a process."""
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
    """Stops threads of other processes. No words."""
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
    """This many open files of one process, children included: raises the limit of this process as far. No words."""
    own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (own, most) and most < count:
        return Found(lacks=f"a process may open {most} files, and {count} are needed (ulimit -n)")
    if resource.RLIM_INFINITY != own < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))
    return Found()


@functools.cache
def slurm():
    """Slurm with jobs of this user. No words."""
    import slurm as cluster

    try:
        with cluster.Slurm():
            return Found()
    except cluster.Unavailable as unavailable:
        return Found(lacks=str(unavailable))


def shared_memory():
    """The size of /dev/shm. The MPIs use it; Syncopate does not. No words."""
    try:
        size = os.statvfs("/dev/shm")
    except OSError as error:
        return Found(lacks=f"no /dev/shm: {error.strerror}")
    return Found(words=(f"{size.f_blocks * size.f_frsize >> 20} MB",))


def surroundings():
    """{what: found}, of everything that a test of this folder asks for."""
    return {
        "mounts of its own": mounts(),
        "mounts of its own on /dev/shm": mounts("/dev/shm"),
        "processes of its own (a container)": processes(),
        "a network of its own": network(),
        "linked networks": linked_networks(),
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
