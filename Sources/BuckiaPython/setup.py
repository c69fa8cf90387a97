"""Gives the wheel its tag: any Python 3, because nothing in it is compiled for one, on the platform of its library."""

import platform
import sysconfig

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.dist import Distribution

# The oldest macOS that Package.swift names.
MACOS = "14_0"


class BinaryDistribution(Distribution):
    """Says that there is a library in the wheel, although nothing is compiled here."""

    def has_ext_modules(self) -> bool:
        return True


class LibraryWheel(bdist_wheel):
    """A wheel whose tag names the platform only."""

    def get_tag(self) -> tuple:
        if platform.system() == "Darwin":
            # The library is for one architecture, also where Python is for two.
            return "py3", "none", f"macosx_{MACOS}_{platform.machine()}"
        return "py3", "none", sysconfig.get_platform().replace("-", "_").replace(".", "_")


setup(cmdclass={"bdist_wheel": LibraryWheel}, distclass=BinaryDistribution)
