"""Turns structured statements (loops, conditions, variables) into the blocks of an LLVM function."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.machine.native.emitter import Emitter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Code(Struct):
    """One function in the making; statements are written in the order of the calls.

    `open` says that the block being written has no end yet.
    """

    name: str
    result: str
    parameters: str
    attributes: str = "noinline"
    linkage: str = "internal "
    emitter: Emitter = field(default_factory=Emitter)
    variables: list[str] = field(default_factory=list)
    open: bool = True
    labels: int = 0

    def value(self, text: str) -> str:
        """The result of an operation."""
        return self.emitter.result(text)

    def do(self, text: str) -> None:
        """An operation without a result."""
        self.emitter.effect(text)

    def call(self, result: str, name: str, arguments: str) -> str:
        """The result of another routine."""
        return self.value(f"call {result} {self.emitter.require(name)}({arguments})")

    def run(self, name: str, arguments: str) -> None:
        """Another routine, without a result."""
        self.do(f"call void {self.emitter.require(name)}({arguments})")

    def at(self, pointer: str, offset: int | str, kind: str = "i8") -> str:
        """The address `offset` elements behind another."""
        return self.value(f"getelementptr {kind}, ptr {pointer}, i64 {offset}")

    def load(self, kind: str, pointer: str, offset: int = 0, align: int | None = None) -> str:
        """A value in memory, `offset` bytes behind a pointer."""
        place = self.at(pointer, offset) if offset else pointer
        return self.value(f"load {kind}, ptr {place}" + (f", align {align}" if align else ""))

    def store(self, kind: str, value: str | int, pointer: str, offset: int = 0, align: int | None = None) -> None:
        """Sets a value in memory."""
        place = self.at(pointer, offset) if offset else pointer
        self.do(f"store {kind} {value}, ptr {place}" + (f", align {align}" if align else ""))

    def variable(self, kind: str, initial: str | int) -> str:
        """A place for a value that changes."""
        name = f"%v{len(self.variables)}"
        self.variables.append(f"  {name} = alloca {kind}")
        self.store(kind, initial, name)
        return name

    def bump(self, kind: str, pointer: str, amount: str | int, offset: int = 0) -> None:
        """Adds to a value in memory."""
        place = self.at(pointer, offset) if offset else pointer
        self.store(kind, self.value(f"add {kind} {self.load(kind, place)}, {amount}"), place)

    def give(self, value: str | int | None = None) -> None:
        """Returns."""
        self.do("ret void" if value is None else f"ret {self.result} {value}")
        self.open = False

    def fresh(self, hint: str) -> str:
        """A name for a block."""
        self.labels += 1
        return f"{hint}{self.labels}"

    def label(self, name: str) -> None:
        """Begins a block, which the one before falls into if it has no end."""
        if self.open:
            self.do(f"br label %{name}")
        self.emitter.label(name)
        self.open = True

    def jump(self, name: str) -> None:
        """Ends a block."""
        if self.open:
            self.do(f"br label %{name}")
        self.open = False

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What follows happens where an i1 holds."""
        inside, behind = self.fresh("then"), self.fresh("behind")
        self.do(f"br i1 {condition}, label %{inside}, label %{behind}")
        self.open = False
        self.label(inside)
        yield
        self.jump(behind)
        self.label(behind)

    @contextmanager
    def loop(self) -> Iterator[str]:
        """What follows is repeated; `leave` it with the name that this gives."""
        start, behind = self.fresh("loop"), self.fresh("done")
        self.label(start)
        yield behind
        self.jump(start)
        self.label(behind)

    def leave(self, loop: str, condition: str) -> None:
        """Ends a loop where an i1 holds."""
        on = self.fresh("on")
        self.do(f"br i1 {condition}, label %{loop}, label %{on}")
        self.open = False
        self.label(on)

    @contextmanager
    def count(self, bound: str | int) -> Iterator[str]:
        """A loop over 0 to `bound` - 1, as i64."""
        place = self.variable("i64", 0)
        with self.loop() as behind:
            number = self.load("i64", place)
            self.leave(behind, self.value(f"icmp sge i64 {number}, {bound}"))
            yield number
            self.bump("i64", place, 1)

    @contextmanager
    def lanes(self, mask: str) -> Iterator[str]:
        """A loop over the set bits of an i32, as i64 lane numbers, lowest first."""
        rest = self.variable("i32", mask)
        with self.loop() as behind:
            bits = self.load("i32", rest)
            self.leave(behind, self.value(f"icmp eq i32 {bits}, 0"))
            less = self.value(f"sub i32 {bits}, 1")
            self.store("i32", self.value(f"and i32 {bits}, {less}"), rest)
            lane = self.value(f"call i32 @llvm.cttz.i32(i32 {bits}, i1 true)")
            yield self.value(f"zext i32 {lane} to i64")

    def text(self) -> str:
        """The function."""
        assert not self.open, self.name  # noqa: S101 - a fault of ours
        head = f"define {self.linkage}{self.result} @{self.name}({self.parameters}) {self.attributes} {{"
        return "\n".join([head, "entry:", *self.variables, "  br label %body", "body:", *self.emitter.lines, "}\n"])
