"""What can be installed from a clone works without the clone: a wheel, and `make install`."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = ("src", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "Makefile")


def run(*command: object, cwd: Path) -> str:
    """What a command prints, with nothing of this checkout on the path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_parts_of_the_package_that_are_not_python_are_declared():
    """The same as below, at once: whatever lies in the package matches a pattern of package-data."""
    import tomllib

    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    package = ROOT / "src" / "cosilo"
    others = {
        path.relative_to(package)
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert others
    for path in others:
        assert any(path.match(pattern) for pattern in patterns["cosilo"]), path


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_wheel_and_make_install_work_without_the_clone(tmp_path):
    pytest.importorskip("build")
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, clone / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, clone / name)
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ".", cwd=clone)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in (clone / "src" / "cosilo").rglob("*") if path.is_file()]
    assert {path.relative_to(clone / "src").as_posix() for path in files} <= inside
    assert "cosilo/py.typed" in inside

    prefix = tmp_path / "prefix"
    python = prefix / "share" / "cosilo" / "bin" / "python"
    run(sys.executable, "-m", "venv", prefix / "share" / "cosilo", cwd=tmp_path)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", clone / "constraints.txt", wheel, cwd=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    command = python.with_name("cosilo")
    assert "report: " in run(command, "demo", "--dir", "demo", cwd=empty)
    assert "cofed_cifar" in run(command, "reproduce", "--list", cwd=empty)

    said = run("make", "install", f"PREFIX={prefix}", f"PYTHON={sys.executable}", cwd=clone)
    assert f"installed: {prefix}/bin/cosilo" in said
    shutil.rmtree(clone)
    assert "report: " in run(prefix / "bin" / "cosilo", "demo", "--dir", "again", cwd=empty)
    assert (empty / "again" / "report.html").exists()
