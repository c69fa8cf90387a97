"""What is in the wheel."""

import inspect
import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

import buckia

ROOT = Path(__file__).parents[2]
PUBLIC = [getattr(buckia, name) for name in buckia.__all__]


def test_nothing_but_the_wheel_is_imported() -> None:
    assert Path(buckia.__file__).is_relative_to(sys.prefix)
    assert metadata.requires("buckia") is None
    others = {name.partition(".")[0] for name in sys.modules if name.startswith("buckia")}
    assert others == {"buckia"}


def test_the_library_and_the_types_are_in_it() -> None:
    files = {str(file) for file in metadata.files("buckia") or []}
    assert "buckia/py.typed" in files
    assert files & {"buckia/libbuckia.so", "buckia/libbuckia.dylib"}


def test_the_tag_names_the_platform_and_nothing_else() -> None:
    [tag] = re.findall(r"^Tag: (.+)$", metadata.distribution("buckia").read_text("WHEEL") or "", re.MULTILINE)
    python, abi, platform = tag.split("-")
    assert (python, abi) == ("py3", "none")
    if sys.platform == "darwin":
        assert re.fullmatch(r"macosx_14_0_(arm64|x86_64)", platform)
    else:
        assert platform == sysconfig.get_platform().replace("-", "_").replace(".", "_")


def test_it_has_the_version_of_the_package() -> None:
    source = (ROOT / "Sources" / "Buckia" / "Version.swift").read_text(encoding="utf-8")
    number = re.search(r'number = "(.+)"', source)
    assert number
    assert buckia.__version__ == buckia.library_version() == metadata.version("buckia") == number[1]
    assert buckia.version_text().startswith(f"buckia {number[1]} (SQLite 3.")


@pytest.mark.parametrize("item", [item for item in PUBLIC if str(getattr(item, "__module__", "")).startswith("buckia")])
def test_everything_public_says_what_it_does(item: object) -> None:
    # A dataclass without a docstring of its own gets its signature.
    assert item.__doc__ and not item.__doc__.startswith(f"{item.__name__}(")  # type: ignore[attr-defined]
    for name, member in vars(item).items():
        if name[0] != "_" and (inspect.isfunction(member) or isinstance(member, (property, classmethod))):
            assert inspect.getdoc(member), f"{item}.{name}"


def test_the_names_of_the_package_are_those_that_it_exports() -> None:
    modules = {name for name, value in vars(buckia).items() if inspect.ismodule(value)}
    public = {name for name in vars(buckia) if name[0] != "_"}
    assert public - modules == {name for name in buckia.__all__ if name[0] != "_"}


def test_the_command_comes_with_the_package() -> None:
    printed = subprocess.run([sys.executable, "-I", "-m", "buckia", "--version"], capture_output=True, text=True)
    assert printed.returncode == 0 and buckia.__version__ in printed.stdout
    script = Path(sys.executable).with_name("buckia")
    assert subprocess.run([script, "ksuid", "new"], capture_output=True, check=True).stdout
