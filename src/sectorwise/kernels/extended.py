"""Turns a launch into the driver's extended form, which says whether it may begin while the one before still runs."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sectorwise.kernels.plan import KernelPlan

SINCE_MAJOR: Final = 9
"""Programmatic dependent launch is there from compute capability 9.0 on (CUDA programming guide)."""

_STREAM_SERIALIZATION: Final = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION of cuda.h


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h; the value is a union of 64 bytes, of which this one is a number."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("padding", ctypes.c_char * 4),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_char * 60),
    )


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    )


def configure_overlap(plan: KernelPlan, stream: int) -> LaunchConfig:
    """The configuration of a launch that may begin once all blocks ahead have begun, or ended where they do not say so.

    The kernel itself waits for what is ahead (`griddepcontrol.wait`) before it touches what others write.
    """
    attribute = LaunchAttribute(id=_STREAM_SERIALIZATION, value=1)
    return LaunchConfig(
        grid=plan.grid,
        block=plan.block,
        dynamic_shared_bytes=plan.dynamic_shared_bytes,
        stream=stream,
        attributes=ctypes.pointer(attribute),
        attribute_count=1,
    )
