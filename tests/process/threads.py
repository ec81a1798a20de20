"""Stops single threads of other processes, as a debugger does, while the rest of each process runs on."""
import ctypes
import os
import pathlib
import threading

PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
WALL = 0x40000000  # makes waitpid wait for threads, too

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if LIBC.ptrace(request, thread, None, None) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot stop thread {thread}: {os.strerror(error)}")


def threads_of(pid):
    """Returns {thread id: name}. The main thread has the name of the program."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    return {int(task.name): (task / "comm").read_text(encoding="ascii").strip() for task in tasks.iterdir()}


def stop_thread(thread):
    """Stops the thread until its process or this one ends."""
    ptrace(PTRACE_SEIZE, thread)
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    # The kernel reports the end of a traced process to its parent only after the tracer, this process, has waited for it.
    threading.Thread(target=take_end, args=[thread], daemon=True).start()


def take_end(thread):
    try:
        while os.WIFSTOPPED(os.waitpid(thread, WALL)[1]):
            pass
    except ChildProcessError:
        return
