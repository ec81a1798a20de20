"""Runs Python scripts without the seconds that importing torch costs each interpreter.

A `ForkServer` starts a process that imports torch once and forks for each script. Its property `python` replaces
`python3 -B` in a command line: it starts a small client, which asks the server for a process with the client's arguments,
directory, environment, standard streams, network and host name, forwards signals to it, and ends with its exit status. If the
client is killed, the server kills the script's process and those that it has started. Client and script have different
process ids. A test that needs these ids, or that limits, stops or otherwise isolates the processes that it starts, starts a
real interpreter.

A run of ctest shares one server, which also forks the test files themselves: `forked_scripts.py start SOCKET`.
"""
import sys

if __name__ == "__main__" and sys.argv[1] == "client":  # before other imports, which the client does not need
    import marshal
    import os
    import signal
    import socket

    def pass_on(number, _):
        try:
            os.kill(script, number)
        except ProcessLookupError:
            pass  # the script has just ended

    passed_on = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)  # until the script's process exists
    with socket.socket(socket.AF_UNIX) as server:
        request = marshal.dumps((sys.argv[3:], dict(os.environ), os.getcwd()))
        os.chdir(os.path.dirname(sys.argv[2]))  # the path of a socket has a small maximum length
        server.connect(os.path.basename(sys.argv[2]))
        spaces = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in ("net", "uts")]
        socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2, *spaces])
        server.sendall(request)
        script = int.from_bytes(server.recv(4), "big")
        for number in passed_on:
            signal.signal(number, pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
        end = server.recv(4)
    status = int.from_bytes(end, "big", signed=True)
    if not end:
        sys.exit("the server of forked scripts has ended")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)

import atexit
import contextlib
import ctypes
import gc
import importlib
import marshal
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import types

_SHARED = "SYNCOPATE_FORK_SERVER"  # the variable with the socket of a server that all tests of a run share


class ForkServer:
    """Starts a server that ends with this process, or uses that of the run of ctest.

    real_first: the first script is started by a real interpreter even if the server runs already.
    Errors:     RuntimeError if the server cannot import `modules`.
    """

    def __init__(self, *modules, interpreter=sys.executable, real_first=False):
        self._modules, self._interpreter, self._words = modules or ("torch",), interpreter, None
        self._is_shared = self._modules == ("torch",) and interpreter == sys.executable and _SHARED in os.environ
        self._real_first = real_first or not self._is_shared
        self._starting = threading.Lock()

    @property
    def python(self):
        """The words to use instead of `python3 -B`. The first use of an own server gets a real interpreter: a server for one
        start does not pay."""
        with self._starting:
            if self._real_first:
                self._real_first = False
                return [self._interpreter, "-B"]
            if self._words is None:
                self._words = [self._interpreter, "-I", "-S", "-B", __file__, "client", self._start()]
            return self._words

    def _start(self):
        """Starts a server unless a shared one exists. Returns the path of its socket."""
        if self._is_shared:
            return os.environ[_SHARED]
        folder = tempfile.mkdtemp(prefix="syncopate-forks-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        server = subprocess.Popen([self._interpreter, "-B", __file__, "serve", f"{folder}/socket", "stdin", *self._modules],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(server.communicate)  # closes its input, which ends the server
        if server.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the server of forked scripts ended with status {server.wait()}")
        return f"{folder}/socket"


def _request(connection):
    """Reads a client's request: arguments, environment and directory of a process; its standard streams; its network and
    host name, as namespaces."""
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 5)
    with connection.makefile("rb") as stream:
        return marshal.loads(stream.read(int.from_bytes(size, "big"))), descriptors[:3], descriptors[3:]


def _become(request, streams, spaces):
    """Turns this child of the server into the process that the client requested. Returns its script and arguments."""
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: this process is killed when the server ends
    for space, own in zip(spaces, ("net", "uts"), strict=True):
        is_own = os.path.samestat(os.fstat(space), os.stat(f"/proc/self/ns/{own}"))
        if not is_own and system.setns(space, 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the {own} namespace of the client")
        os.close(space)
    arguments, environment, folder = request
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for entry in reversed(environment.get("PYTHONPATH", "").split(":")):
        if entry and entry not in sys.path:
            sys.path.insert(1, entry)  # behind the folder of the script
    if "torch" in sys.modules and "OMP_NUM_THREADS" in environment:  # libgomp read the server's value at import
        sys.modules["torch"].set_num_threads(int(environment["OMP_NUM_THREADS"]))
    return arguments


class _Forked:
    """A process that runs a script, and the connection to its client."""

    def __init__(self, connection, number):
        self.connection, self.number, self.process = connection, number, os.pidfd_open(number)
        self.descriptors = connection.fileno(), self.process

    def end(self, client_is_gone):
        """Waits for the process and sends its exit status to the client."""
        if client_is_gone:
            os.killpg(self.number, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.number, 0)[1])
        with contextlib.suppress(BrokenPipeError):
            self.connection.sendall(status.to_bytes(4, "big", signed=True))
        self.close()

    def close(self):
        self.connection.close()
        os.close(self.process)


def _serve(path, end):
    """Forks for each client until `end` is readable. Returns in the forked process, with its script and arguments."""
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(path))
    listener.bind(os.path.basename(path))
    listener.listen(64)
    print("ready", flush=True)
    running = {}  # a _Forked by each of its descriptors
    while True:
        ready = select.select([end, listener, *running], [], [])[0]
        if end in ready:
            os._exit(0)  # the tests have ended; scripts that still run end with this process
        for descriptor in ready:
            if forked := running.get(descriptor):
                for each in forked.descriptors:
                    del running[each]
                forked.end(client_is_gone=descriptor != forked.process)
        if listener in ready:
            connection = listener.accept()[0]
            request, streams, spaces = _request(connection)
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                for each in {listener, connection, *running.values()}:
                    each.close()
                return _become(request, streams, spaces)
            os.setpgid(child, child)  # parent and child both do this, so that neither runs before it is done
            for descriptor in (*streams, *spaces):
                os.close(descriptor)
            forked = _Forked(connection, child)
            with contextlib.suppress(BrokenPipeError):  # the next `select` notices that the client has ended
                connection.sendall(child.to_bytes(4, "big"))
            running.update(dict.fromkeys(forked.descriptors, forked))


def _run(script):
    """Runs a script as the interpreter does. Returns its exit status. Errors: those that the interpreter itself handles, such
    as SystemExit with a message or KeyboardInterrupt."""
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with open(script, "rb") as source:
        code = compile(source.read(), script, "exec")
    try:
        exec(code, main.__dict__)
    except SystemExit as error:
        # A training script's SystemExit is passed on to the interpreter and to the job; a test file's ends here.
        if not script.endswith("_test.py") or not isinstance(error.code, int | None):
            raise
        return int(error.code or 0)
    except Exception as error:
        trace = error.__traceback__.tb_next  # without the frame of this function
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _start_shared(path):
    """Starts a server for all tests of a run of ctest. It ends with the process that started this one, which is ctest."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    server = subprocess.Popen([sys.executable, "-B", __file__, "serve", path, str(os.getppid()), "torch"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    return 0 if server.stdout.readline() == b"ready\n" else 1


if __name__ == "__main__" and sys.argv[1] == "start":
    os._exit(_start_shared(sys.argv[2]))
if __name__ == "__main__":
    gc.disable()  # saves a third of the time of the imports
    for _name in sys.argv[4:]:
        importlib.import_module(_name)
    if "torch" in sys.modules and not sys.modules["torch"].__version__.startswith("1."):
        importlib.import_module("torch._dynamo")  # otherwise the first optimizer of each script imports it, which takes almost as long as torch
    gc.freeze()
    gc.enable()
    sys.argv = _serve(sys.argv[2], sys.stdin if sys.argv[3] == "stdin" else os.pidfd_open(int(sys.argv[3])))
    _status = _run(sys.argv[0])
    # Skips the interpreter's own end, which frees every module and takes almost as long as the imports.
    threading._shutdown()
    atexit._run_exitfuncs()
    for _stream in (sys.stdout, sys.stderr):
        _stream.flush()
    ctypes.PyDLL(None).exit(_status)  # PyDLL keeps the interpreter's lock: torch's destructors may call Python
