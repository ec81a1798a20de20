"""The build backend that pip runs for the whole repository: script/wheel, whose wheel contains the library and the
programs."""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import build_meta

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without it pip builds the wheel to get its name and version while showing that it prepares metadata."""
    os.chdir(ROOT / "python")
    return build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def _announce():
    """Shows a message on the terminal: pip hides the output of a build unless it fails."""
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:
            terminal.write("\nsyncopate-torch: compiling the library and its programs in build/release, which takes minutes; "
                           "`pip install -v .` shows each step\n")
    except OSError:
        pass  # there is no terminal


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: ARG001 (pip's interface)
    """Builds with the installed packages, and never installs system packages itself."""
    looked = subprocess.run([ROOT / "script/bootstrap", "--everything", "--pip", "--print"], stdout=subprocess.PIPE, text=True, check=False)
    if looked.returncode != 0:
        sys.exit(f"syncopate-torch: the build needs Debian packages that are missing: {' '.join(looked.stdout.split())}; "
                 "install them by script/bootstrap --everything --pip, or install a wheel that script/wheel has made elsewhere")
    # script/wheel runs its own pip, which must not use the settings that this pip passes to its builds.
    pips = ("PYTHONPATH", "PYTHONNOUSERSITE", "PIP_BUILD_TRACKER", "_PYPROJECT_HOOKS", "PEP517")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(pips)}
    environment["SYNCOPATE_NO_BOOTSTRAP"] = "1"
    _announce()
    done = subprocess.run([ROOT / "script/wheel"], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit("syncopate-torch: script/wheel has failed; its last lines, above, say why")
    wheel = ROOT / done.stdout.split()[-1]
    shutil.copy(wheel, wheel_directory)
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):  # noqa: ARG001 (pip's interface)
    sys.exit("syncopate-torch: there is no source distribution; build a wheel by script/wheel or `pip install .`")
