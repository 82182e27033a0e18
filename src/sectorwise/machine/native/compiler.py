"""Turns a module's text into machine code of the host, kept by content, and code into functions to call."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.cache import make_key, read_entry, write_entry

_AREA = "native"
_NEEDED_ON_X86 = ("avx2", "fma", "f16c")
_TUNING_ON_X86 = "+fast-gather"
"""Where LLVM thinks little of gathers it takes vectors apart, which at level 0 is three times as slow a GEMM."""


class Host(Struct, frozen=True):
    """The machine that the code is for: its triple, processor, features (`+avx2,...`), and the compiler's release.

    `level` is that of optimisation with which code begins (`tiers` says when it is replaced by better).
    """

    triple: str
    processor: str
    features: str
    release: str
    level: int = 0


@lru_cache(maxsize=1)
def find_host() -> Host | None:
    """The host, or None where there is no compiler, or vectors are too short to be worth it."""
    try:
        from llvmlite import __version__ as version
        from llvmlite import binding
    except ImportError:
        return None
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, features = binding.get_process_triple(), binding.get_host_cpu_features()
    if triple.startswith("x86_64") and not all(features.get(name) for name in _NEEDED_ON_X86):
        return None
    wanted = f"{features.flatten()},{_TUNING_ON_X86}" if triple.startswith("x86_64") else features.flatten()
    return Host(triple, binding.get_host_cpu_name(), wanted, str(version))


def restrict_host(host: Host) -> Host:
    """The same machine as one without AVX-512, to measure what others make of a kernel.

    AMX and AVX10 go with it; the processor is that with which AVX2 began.
    """
    dropped = ("avx512", "avx10", "amx", "evex512")
    features = [
        f"-{feature[1:]}" if feature[1:].startswith(dropped) else feature for feature in host.features.split(",")
    ]
    return replace(host, processor="haswell", features=",".join(features))


class Library(Struct, frozen=True):
    """Code that is loaded, with the functions that it exports; it lives as long as this object."""

    tracker: Any
    exports: tuple[str, ...]

    def address_of(self, name: str) -> int:
        """Address of an exported function."""
        address: int = self.tracker[name]
        return address


def build(text: str, host: Host, level: int) -> tuple[bytes, float | None]:
    """Machine code of a module at an optimisation level: 0 is for code that runs briefly, 1 for code that runs long.

    And the seconds of a processor that compiling took; None where it was done before.
    """
    key = _key_of(text, host, level)
    stored = read_entry(_AREA, key)
    if stored is not None:
        return stored, None
    begin = time.thread_time()
    code = compile_module(text, host, level)
    seconds = time.thread_time() - begin
    write_entry(_AREA, key, code)
    return code, seconds


def find_built(text: str, host: Host, level: int) -> bytes | None:
    """Machine code of a module at a level, if it was made before."""
    return read_entry(_AREA, _key_of(text, host, level))


def _key_of(text: str, host: Host, level: int) -> str:
    return make_key(text, host.triple, host.processor, host.features, host.release, str(level))


def compile_module(text: str, host: Host, level: int) -> bytes:
    """Machine code of a module; nothing is kept."""
    from llvmlite import binding

    module = binding.parse_assembly(text)
    module.triple = host.triple
    target = binding.Target.from_triple(host.triple)
    machine = target.create_target_machine(
        cpu=host.processor, features=host.features, opt=level, reloc="pic", codemodel="default", jit=True
    )
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    if level > 1:
        passes = builder.getModulePassManager()
    else:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
    passes.run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def load(code: bytes, exports: tuple[str, ...]) -> Library:
    """Loads machine code into this process."""
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in exports:
        builder.export_symbol(name)
    return Library(builder.link(_linker(), f"sectorwise{_next_number()}"), exports)


@lru_cache(maxsize=1)
def _linker() -> Any:  # noqa: ANN401 - the compiler ships no types
    from llvmlite import binding

    find_host()
    return binding.create_lljit_compiler(use_jit_link=True)


_numbers = iter(range(1 << 62))


def _next_number() -> int:
    return next(_numbers)
