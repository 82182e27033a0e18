"""Turns `python -m sectorwise` into the command line."""

from __future__ import annotations

from sectorwise.cli.main import main

if __name__ == "__main__":
    main()
