"""Turns the GPU of this machine into a device file, by measuring it."""

from __future__ import annotations

from pathlib import Path

import click

from sectorwise.cli.output import write_text


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.toml",
    help="Write there, not to stdout.",
)
def calibrate(output: Path | None) -> None:
    """Measure the GPU of this machine: latencies, memory under load, ceilings, caches, blocks, stores, atomics.

    Takes less than a minute, seven gigabytes of the GPU's memory, and the GPU to itself. What comes out is a device
    file: `--device FILE.toml` answers for that GPU, with its own numbers where models borrow those of an H200
    otherwise.
    """
    from sectorwise.calibrate.driver import open_gpu
    from sectorwise.calibrate.fit import fit_constants
    from sectorwise.calibrate.measure import compile_kernels, measure
    from sectorwise.calibrate.write import write_device

    gpu = open_gpu()
    readings = tuple(measure(gpu, compile_kernels(gpu)))
    write_text(write_device(gpu, fit_constants(readings)), output)
