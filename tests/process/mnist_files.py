"""The files of Fashion-MNIST as libtorch reads them, unpacked, for programs of the examples."""
import atexit
import functools
import gzip
import pathlib
import shutil
import tempfile

PACKED = pathlib.Path("/usr/share/datasets/fashion-mnist")


@functools.cache
def folder():
    """A folder with the four files, until this process ends."""
    unpacked = pathlib.Path(tempfile.mkdtemp(prefix="fashion-mnist-"))
    atexit.register(shutil.rmtree, unpacked)
    for packed in PACKED.glob("*.gz"):
        (unpacked / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return str(unpacked)
