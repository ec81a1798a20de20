"""Where rank 0 leaves the coordinator and the key of a job for the other ranks of its host: any process that reaches the port of
torch's store reads what the store has, those of other users among them."""
import os
import pathlib
import re
import secrets
import stat
import tempfile

from syncopate_torch.errors import ConfigError

_NAME = re.compile(r"[0-9a-f]{32}")


def folder_of_user():
    """A folder that this user alone may read. Errors: ConfigError, where something else has its name."""
    folder = pathlib.Path(tempfile.gettempdir(), f"syncopate-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ConfigError(f"ranks find each other in {folder}, which must be a folder that only this user may read: remove it, or "
                          "set TMPDIR to another folder")
    return folder


def identity_of_folder():
    """The same text for ranks that see the same folder: those of one host in containers of their own may not."""
    facts = folder_of_user().stat()
    return f"{facts.st_dev}:{facts.st_ino}"


def leave(text):
    """Writes a new file, and returns its name in the folder."""
    name = secrets.token_hex(16)
    descriptor = os.open(folder_of_user() / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def find(name):
    """The text of a file that another rank has left. Errors: ConfigError, for a name that none has written."""
    path = folder_of_user() / name
    if not _NAME.fullmatch(name) or not path.is_file():
        raise ConfigError(f"the store of torch.distributed names {name!r:.80}, which no rank of this user has left in "
                          f"{folder_of_user()}: another process writes into the store of this job; choose another MASTER_PORT")
    return path.read_text(encoding="utf-8")


def remove(name):
    (folder_of_user() / name).unlink(missing_ok=True)
