"""The command `buckia`, which comes with the package: `python -m buckia`."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the command."""
    command = Path(__file__).with_name("command")
    if not command.exists():
        sys.exit("This build of the package has no command; `make wheel` builds one that has.")
    os.execv(command, ["buckia", *sys.argv[1:]])


if __name__ == "__main__":
    main()
