"""Turns every way in which the tool cannot go on into an exception whose text is written for people."""

from __future__ import annotations


class SectorwiseError(Exception):
    """Base of all errors of this package: the command line prints its text and exits with code 2."""


class CompileError(SectorwiseError):
    """A source does not compile; the text is the compiler's message with the file's own lines."""


class MissingToolError(SectorwiseError):
    """A compiler or disassembler is not installed; the text says which extra brings it."""


class CorruptBinaryError(SectorwiseError):
    """A cubin is truncated or inconsistent; the text names the byte offset."""


class LaunchError(SectorwiseError):
    """A launch cannot be read, or does not fit its kernel; the text has a caret under the place."""


class UnknownKernelError(SectorwiseError):
    """No kernel of that name; the text names the nearest."""


class UnknownDeviceError(SectorwiseError):
    """No device of that name; the text names the nearest."""


class UnsupportedDeviceError(SectorwiseError):
    """The device is known, but what was asked for does not work on it; the text says what still does."""


class ArchitectureMismatchError(SectorwiseError):
    """A cubin was built for another architecture than the device's."""


class StepLimitError(SectorwiseError):
    """A launch ran past its step limit; the text names the line that it was on."""


class CaptureError(SectorwiseError):
    """Code whose launches are captured used something that needs a GPU and has no replacement; the text names it."""


class MemoryBudgetError(SectorwiseError):
    """A launch needs more memory than it may take."""


class ArgumentError(SectorwiseError):
    """A function or option was given a value outside its domain."""


class ReportError(SectorwiseError):
    """A profiler's report cannot be read, or is not of the kernel, build or launch that it is compared with."""


class ProfilerError(SectorwiseError):
    """Nsight Compute is missing, too old, or not allowed to count; the text says what to do."""


class CountersForbiddenError(ProfilerError):
    """This user, or this machine, may not read the GPU's counters; what else can be checked still is."""


class DeviceRunError(SectorwiseError):
    """There is no GPU to launch on, or a launch on it failed; the text says which and why."""
