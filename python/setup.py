"""Tags a wheel that contains the library and the programs (script/wheel) for this kind of machine."""
import pathlib

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

BRINGS_PROGRAMS = (pathlib.Path(__file__).parent / "syncopate_torch/bin/syncopate").exists()


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return BRINGS_PROGRAMS


class AnyPython(bdist_wheel):
    """Tags the wheel for any Python 3: nothing in it is compiled against an interpreter."""

    def get_tag(self):
        tag = super().get_tag()
        return ("py3", "none", tag[2]) if BRINGS_PROGRAMS else tag


BACKEND = ["syncopate = syncopate_backend:register"]
ENTRY_POINTS = {
    "torch.backends": BACKEND,  # torch 2.5 to 2.13 load it at import
    "torch.distributed.backends": BACKEND,  # torch 2.14 loads it by the backend's name
    **({"console_scripts": ["syncopate = syncopate_torch.program:main"]} if BRINGS_PROGRAMS else {}),
}
setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": AnyPython}, entry_points=ENTRY_POINTS)
