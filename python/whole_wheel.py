"""What pip runs for the repository as a whole: script/wheel, whose wheel brings the library and the programs along."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # noqa: ARG001 (pip's interface)
    """Builds with what is installed, and never installs packages of the system by itself."""
    looked = subprocess.run([ROOT / "script/bootstrap", "--pip", "--print"], stdout=subprocess.PIPE, text=True, check=False)
    if looked.returncode != 0:
        sys.exit(f"syncopate-torch: the build needs Debian packages that are missing: {' '.join(looked.stdout.split())}; "
                 "install them by script/bootstrap --pip, or install a wheel that script/wheel has made elsewhere")
    # script/wheel runs a pip of its own, which must not take what this one tells its builds for its own.
    pips = ("PYTHONPATH", "PYTHONNOUSERSITE", "PIP_BUILD_TRACKER", "_PYPROJECT_HOOKS", "PEP517")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(pips)}
    environment["SYNCOPATE_NO_BOOTSTRAP"] = "1"
    done = subprocess.run([ROOT / "script/wheel"], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit("syncopate-torch: script/wheel has failed; its last lines, above, say why")
    wheel = ROOT / done.stdout.split()[-1]
    shutil.copy(wheel, wheel_directory)
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):  # noqa: ARG001 (pip's interface)
    sys.exit("syncopate-torch: there is no source distribution; build a wheel by script/wheel or `pip install .`")
