"""Turns what the disassembler and the ELF tables say of a kernel into frozen data that every later stage reads."""

from __future__ import annotations

from msgspec import Struct, field

ZERO_REGISTER = 255
"""Index of RZ, and of URZ whatever its number in the encoding: reads as zero, writes are dropped."""

RETURN_PLACE = 504
"""Index of the lower word of Rpc, which RPCMOV moves to and from; the upper one follows. No register has it."""

TRUE_PREDICATE = 7
"""Index of PT and UPT: reads as true, writes are dropped."""


class Location(Struct, frozen=True):
    """A place in a source file; `inlined_at` is the chain of call sites, innermost first."""

    file: str
    line: int
    inlined_at: tuple[Location, ...] = ()


class Register(Struct, frozen=True):
    """`R7`, `UR4`, `-R3`, `|R2|`, `~R5`, `R4.H0_H0`, `R2.64`: a register operand and how it is read.

    `suffixes` keeps what follows the name, in order, without `reuse`: `("64",)`, `("H1_H1",)`, `("B1",)`, `("F32",)`.
    """

    index: int
    uniform: bool = False
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    suffixes: tuple[str, ...] = ()


class Predicate(Struct, frozen=True):
    """`P0`, `!P3`, `UP1`, `PT`: a predicate operand."""

    index: int
    uniform: bool = False
    negate: bool = False


class Immediate(Struct, frozen=True):
    """An integer written in the instruction; `value` is the signed or unsigned number as printed."""

    value: int


class FloatImmediate(Struct, frozen=True):
    """A number printed as a float, `1.5`, `+INF`, `-QNAN` (not `0x7fff...` forms); the opcode decides its format."""

    value: float
    text: str


class Constant(Struct, frozen=True):
    """`c[0x0][0x210]`, `c[0x3][R2+0x10]`, `cx[UR4][0x20]`: a constant-bank operand.

    `bank` is None for bindless access through `descriptor`.
    """

    bank: int | None
    offset: int
    index: Register | None = None
    descriptor: Register | None = None
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    suffixes: tuple[str, ...] = ()


class Address(Struct, frozen=True):
    """`desc[UR4][R2.64+0x10]`, `[R3.X4+UR5+0x80]`, `[UR4]`: a memory operand.

    The address is `base * scale + uniform + offset`; `base_is_wide` marks a 64-bit pair (`.64`), `base_suffixes`
    keeps the rest (`U32`, `X4`).
    """

    base: Register | None
    uniform: Register | None
    offset: int
    base_is_wide: bool = False
    scale: int = 1
    uniform_is_wide: bool = False
    descriptor: Register | None = None
    base_suffixes: tuple[str, ...] = ()


class SpecialRegister(Struct, frozen=True):
    """`SR_TID.X`, `SRZ`, ...: a special register by its printed name."""

    name: str


class Target(Struct, frozen=True):
    """A branch, call or BSSY target: byte offset inside this kernel's code, or the name of a function elsewhere."""

    offset: int | None
    symbol: str | None = None


class ConvergenceBarrier(Struct, frozen=True):
    """`B0` to `B15`."""

    index: int


class Scoreboard(Struct, frozen=True):
    """`SB0` to `SB5`."""

    index: int


class Handle(Struct, frozen=True):
    """`gdesc[UR4]`, `tmem[UR6+0x10]`, `idesc[UR5]`: what a uniform register names; `kind` is the word before."""

    kind: str
    register: Register
    offset: int = 0
    suffixes: tuple[str, ...] = ()


class AddressHalf(Struct, frozen=True):
    """`32@lo($str)`: half of a variable's address plus `addend`, which the loader writes into the code.

    The linker and compilers before 12.4 make these; otherwise addresses are loaded from constant bank 4.
    """

    symbol: str
    is_high: bool
    addend: int = 0


class Keyword(Struct, frozen=True):
    """A word of the instruction's own: `PR` (all predicates), `2D` and `ARRAY_2D` (textures), `gsb0`."""

    text: str


class OtherOperand(Struct, frozen=True):
    """An operand of a form that the parser does not know, kept as printed."""

    text: str


Operand = (
    Register
    | Predicate
    | Immediate
    | FloatImmediate
    | Constant
    | Address
    | SpecialRegister
    | Target
    | ConvergenceBarrier
    | Scoreboard
    | Handle
    | AddressHalf
    | Keyword
    | OtherOperand
)


class Control(Struct, frozen=True):
    """The scheduling fields of a 128-bit instruction (bits 105 and up); a barrier of 7 means none."""

    stall_cycles: int
    yield_hint: bool
    write_barrier: int
    read_barrier: int
    wait_mask: int
    reuse_mask: int


class Instruction(Struct, frozen=True):
    """One SASS instruction: what is printed, parsed, with its place in code and source.

    `branch_targets` are the offsets that an indirect branch (BRX, JMX) can reach, where its table is known.
    """

    index: int
    offset: int
    opcode: str
    modifiers: tuple[str, ...]
    guard: Predicate | None
    operands: tuple[Operand, ...]
    text: str
    encoding: int
    control: Control
    location: Location | None
    branch_targets: tuple[int, ...] = ()

    def has(self, modifier: str) -> bool:
        """Whether the opcode carries this modifier (`.64`, `.X`, ...), written without the dot."""
        return modifier in self.modifiers


class Parameter(Struct, frozen=True):
    """A kernel parameter as the cubin's own table gives it: no type, only place and size."""

    ordinal: int
    offset_bytes: int
    size_bytes: int


class Resources(Struct, frozen=True):
    """What a block of this kernel needs, from the cubin's tables.

    `static_shared_bytes` is the kernel's own use, without the bytes that the driver reserves. `cluster` are the blocks
    of a cluster along x, y, z (`__cluster_dims__`), None where the kernel does not ask for clusters.
    """

    registers_per_thread: int
    static_shared_bytes: int
    local_bytes_per_thread: int
    barriers: int
    max_threads_per_block: int | None
    cluster: tuple[int, int, int] | None = None


class Kernel(Struct, frozen=True):
    """A kernel: its code in address order, its parameters and resources.

    `instructions` holds the entry's own section first, then every function that it calls, each at its own run of
    offsets; `functions` maps a function's name to the offset of its first instruction. `parameter_base` is the byte
    offset of the parameters in constant bank 0. `constants` are the initial values of constant banks 2 and up, by
    bank. `name` is the symbol; `readable_name` is what its author wrote (`transpose<32>`), `parameter_types` the types
    that a C++ symbol tells, None for `extern "C"`.
    """

    name: str
    target: str
    instructions: tuple[Instruction, ...]
    parameters: tuple[Parameter, ...]
    parameter_base: int
    resources: Resources
    functions: dict[str, int] = field(default_factory=dict)
    constants: dict[int, bytes] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    externals: tuple[External, ...] = ()
    readable_name: str = ""
    parameter_types: tuple[str, ...] | None = None


class Variable(Struct, frozen=True):
    """A module variable (`__constant__` or `__device__`): where it lives, and its initial bytes (None: zeros).

    `space` is `constant` (then `bank` and `offset_bytes` place it in a constant bank) or `global` (then the loader
    allocates it). `relocations` names the constant-bank words that receive its address, each (bank, byte offset).
    `pointers` are the places within its own bytes that receive an address: (byte offset, variable's name, addend).
    """

    name: str
    space: str
    size_bytes: int
    bank: int | None = None
    offset_bytes: int | None = None
    initial: bytes | None = None
    relocations: tuple[tuple[int, int], ...] = ()
    pointers: tuple[tuple[int, str, int], ...] = ()


class External(Struct, frozen=True):
    """A function that the driver brings (`vprintf`, `__assertfail`), and the (bank, offset) words with its address."""

    name: str
    relocations: tuple[tuple[int, int], ...] = ()


class Cubin(Struct, frozen=True):
    """All kernels of one cubin for one target, `sm_90`."""

    target: str
    kernels: tuple[Kernel, ...]
