"""Turns a kernel, a launch and a device into a bound launch: constant banks, allocations and windows, all checked."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.binary.abi import find_driver_constants
from sectorwise.binary.ir import Constant
from sectorwise.device import require_capability, require_sass
from sectorwise.errors import ArchitectureMismatchError
from sectorwise.launch.addresses import PlacedBuffer, assign_addresses, find_address, find_buffers
from sectorwise.launch.carets import launch_error, name_nearest
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.contents import materialise, open_values
from sectorwise.launch.dtypes import ELEMENT_TYPES, size_of
from sectorwise.launch.limits import check_limits
from sectorwise.launch.packing import MisfitError, pack_argument
from sectorwise.launch.signature import find_mismatch, read_parameter_type

if TYPE_CHECKING:
    from sectorwise.binary.abi import DriverConstants
    from sectorwise.binary.ir import External, Kernel, Parameter, Variable
    from sectorwise.device import DeviceSpec
    from sectorwise.errors import LaunchError
    from sectorwise.launch.config import Argument, LaunchConfig, PointerArgument, Span
    from sectorwise.launch.packing import Path

SHARED_WINDOW = 0x7FF0_0000_0000
LOCAL_WINDOW = 0x7FF1_0000_0000
CONSTANT_WINDOW = 0x7FF2_0000_0000
PARAMETER_WINDOW = 0x7FF3_0000_0000
"""First generic addresses of the windows. A kernel may take the upper half alone: the lower halves are zero."""

EXTERNAL_CODE = 0x7FF4_0000_0000
"""Address of the first function that the driver brings; the next ones follow, 256 bytes apart."""

STACK_POINTER = 1 << 24
"""First value of R1: the stack grows down from the end of the local window."""

# Tegra parts run code of their own compute capability alone (CUDA programming guide, binary compatibility).
_TEGRA = frozenset({(8, 7)})


class Allocation(Struct, frozen=True):
    """A global buffer: its first address (512-byte aligned), its size, its element type and what it holds at the start.

    Guard space on both sides belongs to no allocation. `argument` names it in reports (`argument 0`, `tab`).
    """

    base: int
    size_bytes: int
    argument: str
    buffer: BufferArgument

    @property
    def own_bytes(self) -> int:
        """Bytes of the array itself, without what lies around it in memory."""
        return self.buffer.passed * ELEMENT_TYPES[self.buffer.dtype].size_bytes


class BoundLaunch(Struct, frozen=True):
    """Everything the machine needs to run one launch.

    `banks` maps a constant bank to its bytes. Shared memory of a block occupies byte offsets 0 to `shared_bytes` of
    the shared window (the driver's reserved bytes included, which precede the kernel's own); generic addresses in
    `[shared_window, shared_window + 16 MiB)` and `[local_window, local_window + 16 MiB)` map to shared and local.
    The stack of a thread starts at `stack_pointer` in the local window and grows down. `externals` are the functions
    that the driver brings (`vprintf`), each with the address at which the kernel would call it.
    """

    kernel: Kernel
    launch: LaunchConfig
    device: DeviceSpec
    banks: dict[int, bytes]
    allocations: tuple[Allocation, ...]
    shared_bytes: int
    local_bytes_per_thread: int
    shared_window: int
    local_window: int
    stack_pointer: int = STACK_POINTER
    externals: tuple[tuple[str, int], ...] = ()


def bind(
    kernel: Kernel, launch: LaunchConfig, device: DeviceSpec, parameter_types: tuple[str, ...] | None = None
) -> BoundLaunch:
    """Return the launch bound to its kernel on a device; contents of buffers stay lazy.

    `parameter_types` are the spellings of the parameters' types, where the front end knows them: they decide what a
    plain number is, and are checked.

    Raises:
        ArchitectureMismatchError: the cubin's target does not run on the device.
        UnsupportedDeviceError: the device runs no SASS.
        LaunchError: the launch does not fit kernel or device; a caret stands under the place.
    """
    check_target(kernel, device)
    needs = kernel.resources
    check_limits(launch, device, needs.registers_per_thread, needs.static_shared_bytes, needs.max_threads_per_block)
    _check_clusters(kernel, launch)
    _check_count(kernel, launch, parameter_types)
    values = match_variables(kernel, launch)
    layout = find_driver_constants(kernel.target)
    externals = {external.name: EXTERNAL_CODE + 256 * number for number, external in enumerate(kernel.externals)}
    memory = _place(kernel, launch, externals)
    banks = _fill_module_banks(memory, values)
    parameters = _pack_parameters(memory, parameter_types)
    banks[0] = _fill_driver_constants(kernel, layout, launch, device, parameters)
    return BoundLaunch(
        kernel,
        launch,
        device,
        banks,
        (*_make_allocations(memory, values), *_map_windows(kernel, layout, banks)),
        _reserved_shared_bytes(device) + needs.static_shared_bytes + launch.dynamic_shared_bytes,
        needs.local_bytes_per_thread,
        SHARED_WINDOW,
        LOCAL_WINDOW,
        externals=tuple(externals.items()),
    )


def check_target(kernel: Kernel, device: DeviceSpec) -> None:
    """Raise if code for the kernel's target does not run on the device.

    `sm_XY` runs on X.Z with Z of at least Y; `sm_XYa` on X.Y alone; `sm_XYf` on the family, taken as `sm_XY`
    (CUDA programming guide, binary compatibility).
    """
    require_sass(device)
    found = re.fullmatch(r"sm_(?P<major>\d+)(?P<minor>\d)(?P<suffix>[af]?)", kernel.target)
    capability = device.compute_capability
    if found is not None and capability is not None:
        target = (int(found["major"]), int(found["minor"]))
        is_fixed = found["suffix"] == "a" or target in _TEGRA or capability in _TEGRA
        if target == capability or (not is_fixed and target[0] == capability[0] and target[1] < capability[1]):
            return
    raise ArchitectureMismatchError(
        f"{_name(kernel)} is compiled for {kernel.target}, which {device.name} ({device.id}, compute capability "
        f"{device.architecture}) does not run; it runs {', '.join(device.compile_targets)}"
    )


class _Memory(Struct, frozen=True):
    """Where everything of a launch has its address: buffers, `__device__` variables, the driver's functions."""

    launch: LaunchConfig
    kernel: Kernel
    placed: tuple[PlacedBuffer, ...]
    symbols: dict[str, int]
    """Addresses of module variables, of the driver's functions, and of the kernel's functions in its own code."""

    def address_of(self, argument: BufferArgument | PointerArgument, path: Path) -> int:
        return find_address(argument, path, self.placed)


def _place(kernel: Kernel, launch: LaunchConfig, externals: dict[str, int]) -> _Memory:
    buffers = find_buffers(launch)
    in_memory = [variable for variable in kernel.variables if variable.space == "global"]
    sizes_bytes = [size_of(buffer) for _, _, buffer in buffers]
    addresses = assign_addresses((*sizes_bytes, *(variable.size_bytes for variable in in_memory)))
    placed = tuple(PlacedBuffer(*found, base) for found, base in zip(buffers, addresses, strict=False))
    symbols = kernel.functions | externals
    symbols |= zip((variable.name for variable in in_memory), addresses[len(buffers) :], strict=True)
    for variable in kernel.variables:
        if variable.space == "constant" and variable.offset_bytes is not None:
            symbols[variable.name] = CONSTANT_WINDOW + variable.offset_bytes
    return _Memory(launch, kernel, placed, symbols)


def _check_clusters(kernel: Kernel, launch: LaunchConfig) -> None:
    cluster = kernel.resources.cluster or (1, 1, 1)
    if any(blocks % size for blocks, size in zip(launch.grid, cluster, strict=True)):
        grid, size = (" x ".join(str(number) for number in each) for each in (launch.grid, cluster))
        raise _error(launch, f"a grid of {grid} blocks cannot be made of the kernel's clusters of {size}", None)


def _check_count(kernel: Kernel, launch: LaunchConfig, types: tuple[str, ...] | None) -> None:
    wanted, given = len(kernel.parameters), len(launch.arguments)
    if wanted == given:
        return
    if types is not None and len(types) == wanted:
        listed = ", ".join(types)
    else:
        listed = ", ".join(f"{parameter.size_bytes}" for parameter in kernel.parameters) + " bytes"
    takes = f" ({listed})" if wanted else ""
    span = launch.arguments[wanted].span if given > wanted else launch.arguments_span
    message = f"{_name(kernel)} takes {wanted} argument{'s' if wanted != 1 else ''}{takes}, got {given}"
    raise _error(launch, message, span)


def _name(kernel: Kernel) -> str:
    """The kernel as its author calls it, without the parameters that a mangled name brings."""
    return kernel.readable_name or kernel.name


def _pack_parameters(memory: _Memory, types: tuple[str, ...] | None) -> bytes:
    """Return the bytes of all parameters, from the first one's place on."""
    kernel, launch = memory.kernel, memory.launch
    ordered = sorted(kernel.parameters, key=lambda parameter: parameter.ordinal)
    known = types if types is not None and len(types) == len(ordered) else (None,) * len(ordered)
    packed = bytearray(max((each.offset_bytes + each.size_bytes for each in ordered), default=0))
    for parameter, argument, spelled in zip(ordered, launch.arguments, known, strict=True):
        data = _pack_parameter(memory, parameter, argument, spelled)
        packed[parameter.offset_bytes : parameter.offset_bytes + parameter.size_bytes] = data
    return bytes(packed)


def _pack_parameter(memory: _Memory, parameter: Parameter, argument: Argument, spelled: str | None) -> bytes:
    where = f"argument {parameter.ordinal}" + (f" ({spelled})" if spelled is not None else "")
    declared = None
    if spelled is not None:
        kind = read_parameter_type(spelled)
        mismatch = find_mismatch(argument, kind)
        if mismatch is not None:
            raise _error(memory.launch, f"argument {parameter.ordinal}: {mismatch}", argument.span)
        is_plain = not kind.is_pointer and not kind.is_vector and kind.dtype is not None
        declared = (
            kind.dtype if is_plain and ELEMENT_TYPES[kind.dtype or ""].size_bytes == parameter.size_bytes else None
        )
    try:
        return pack_argument(argument, parameter.size_bytes, memory.address_of, (parameter.ordinal,), declared)
    except MisfitError as error:
        raise _error(memory.launch, f"{where}: {error}", argument.span) from error


def match_variables(kernel: Kernel, launch: LaunchConfig) -> dict[str, Argument]:
    """Return the values that the launch gives to module variables, by the variable's symbol.

    Raises LaunchError for a name that is of no variable, or of several.
    """
    values: dict[str, Argument] = {}
    symbols = [variable.name for variable in kernel.variables]
    for name, value in launch.constants:
        # C++ mangles a variable in a namespace, or a static one, as ...<length><name>[E].
        mangled = (f"{len(name)}{name}", f"{len(name)}{name}E")
        matching = [symbol for symbol in symbols if symbol == name]
        matching = matching or [symbol for symbol in symbols if symbol.startswith("_Z") and symbol.endswith(mangled)]
        if len(matching) != 1:
            known = f"; it has {', '.join(symbols)}" if symbols else "; it has none"
            found = f"{len(matching)} module variables" if matching else "no module variable"
            message = f"{found} of {_name(kernel)} named '{name}'{name_nearest(name, symbols) or known}"
            raise _error(launch, message, value.span)
        values[matching[0]] = value
    return values


def _fill_module_banks(memory: _Memory, values: dict[str, Argument]) -> dict[int, bytes]:
    """Return banks 2 and up: initial values, values of the launch, addresses of variables and functions."""
    kernel = memory.kernel
    banks = {bank: bytearray(data) for bank, data in kernel.constants.items()}
    for variable in kernel.variables:
        if variable.bank is None or variable.offset_bytes is None:
            continue
        bank = banks.setdefault(variable.bank, bytearray())
        end = variable.offset_bytes + variable.size_bytes
        bank.extend(bytes(max(end - len(bank), 0)))
        bank[variable.offset_bytes : end] = materialise(
            _variable_contents(memory, variable, values.get(variable.name))
        ).tobytes()
    symbols: tuple[Variable | External, ...] = (*kernel.variables, *kernel.externals)
    for symbol in symbols:
        for number, offset in symbol.relocations:
            bank = banks.setdefault(number, bytearray())
            bank.extend(bytes(max(offset + 8 - len(bank), 0)))
            struct.pack_into("<Q", bank, offset, memory.symbols.get(symbol.name, 0))
    return {number: bytes(bank) for number, bank in banks.items()}


def _variable_contents(memory: _Memory, variable: Variable, value: Argument | None) -> BufferArgument:
    """Return what a module variable holds at the start: the launch's value, or the initial one with its addresses."""
    if isinstance(value, BufferArgument):
        if size_of(value) != variable.size_bytes:
            given = f"{value.dtype}[{value.count}] has {size_of(value):,}"
            raise _error(memory.launch, f"{variable.name} has {variable.size_bytes:,} bytes, {given}", value.span)
        return value
    if value is not None:
        try:
            return _hold(pack_argument(value, variable.size_bytes, memory.address_of, (variable.name,)))
        except MisfitError as error:
            raise _error(memory.launch, f"{variable.name}: {error}", value.span) from error
    if variable.initial is None and not variable.pointers:
        return BufferArgument("u8", variable.size_bytes, Contents())
    data = bytearray(variable.initial or bytes(variable.size_bytes))
    for offset, name, addend in variable.pointers:
        struct.pack_into("<Q", data, offset, memory.symbols.get(name, 0) + addend)
    return _hold(bytes(data))


def _make_allocations(memory: _Memory, values: dict[str, Argument]) -> tuple[Allocation, ...]:
    for each in memory.placed:
        if each.buffer.contents.kind in {"file", "array"}:
            # A file that is not there, or does not fit, is told now and not in the middle of the run.
            open_values(each.buffer)
    made = [Allocation(each.base, size_of(each.buffer), each.label, each.buffer) for each in memory.placed]
    for variable in memory.kernel.variables:
        if variable.space == "global":
            buffer = _variable_contents(memory, variable, values.get(variable.name))
            made.append(Allocation(memory.symbols[variable.name], variable.size_bytes, variable.name, buffer))
    return tuple(made)


def _round_up_reciprocal(blocks: int) -> float:
    """A single not below 1 / blocks, so that its product with a multiple is exact once cut.

    The driver's own bits are not known.
    """
    found = np.float32(1) / np.float32(blocks)
    return float(found if float(found) * blocks >= 1 else np.nextafter(found, np.float32(2)))


def _fill_driver_constants(
    kernel: Kernel, layout: DriverConstants, launch: LaunchConfig, device: DeviceSpec, parameters: bytes
) -> bytes:
    """Return constant bank 0: what the driver writes for every kernel, then the parameters."""
    cluster = kernel.resources.cluster or (1, 1, 1)
    base = kernel.parameter_base if parameters else layout.parameters
    bank = bytearray(max(layout.parameters, base) + len(parameters))
    bank[base : base + len(parameters)] = parameters
    words: list[tuple[int | None, str, tuple[float, ...]]] = [
        (layout.block_dimensions, "<3I", launch.block),
        (layout.grid_dimensions, "<3I", launch.grid),
        (layout.stack_pointer, "<I", (STACK_POINTER,)),
        (layout.dynamic_shared_bytes, "<I", (launch.dynamic_shared_bytes,)),
        (layout.reserved_shared_bytes, "<I", (_reserved_shared_bytes(device),)),
        (layout.multiprocessors, "<I", (device.sm_count,)),
        (layout.grid_number, "<Q", (1,)),
        (layout.shared_window, "<Q", (SHARED_WINDOW,)),
        (layout.local_window, "<Q", (LOCAL_WINDOW,)),
        (layout.constant_window, "<Q", (CONSTANT_WINDOW,)),
        (layout.parameter_window, "<Q", (PARAMETER_WINDOW,)),
    ]
    if layout.cluster is not None:
        words += [
            (layout.cluster.blocks, "<3I", cluster),
            (layout.cluster.block_reciprocals, "<3f", tuple(_round_up_reciprocal(blocks) for blocks in cluster)),
            (layout.cluster.clusters, "<3I", tuple(a // b for a, b in zip(launch.grid, cluster, strict=True))),
            (layout.cluster.blocks_total, "<I", (cluster[0] * cluster[1] * cluster[2],)),
        ]
    for offset, form, numbers in words:
        if offset is not None:
            struct.pack_into(form, bank, offset, *numbers)
    return bytes(bank)


def _map_windows(kernel: Kernel, layout: DriverConstants, banks: dict[int, bytes]) -> tuple[Allocation, ...]:
    """Return constants and parameters as global memory, where the kernel can make generic addresses of them."""
    read = {
        operand.offset
        for instruction in kernel.instructions
        for operand in instruction.operands
        if isinstance(operand, Constant) and operand.bank == 0
    }
    has_address = any(variable.space == "constant" and variable.relocations for variable in kernel.variables)
    mapped = []
    if banks.get(3) and (layout.constant_window in read or has_address):
        mapped.append(Allocation(CONSTANT_WINDOW, len(banks[3]), "constant bank 3", _hold(banks[3])))
    if layout.parameter_window in read:
        data = banks[0][layout.parameter_window_start :]
        mapped.append(Allocation(PARAMETER_WINDOW, len(data), "kernel parameters", _hold(data)))
    return tuple(mapped)


def _reserved_shared_bytes(device: DeviceSpec) -> int:
    """Return the bytes before a kernel's own shared memory; before sm_90 what the driver reserves has no address."""
    capability = require_capability(device)
    return capability.shared_reserved_per_block_bytes if capability.compute_capability >= (9, 0) else 0


def _hold(data: bytes) -> BufferArgument:
    return BufferArgument("u8", len(data), Contents("array", array=np.frombuffer(data, np.uint8)))


def _error(launch: LaunchConfig, message: str, span: Span | None) -> LaunchError:
    return launch_error(message, span, f"launch of {launch.kernel}")
