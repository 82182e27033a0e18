"""Turns single LLVM operations into lines of a function's text, equal pure operations once."""

from __future__ import annotations

from msgspec import Struct, field


class Emitter(Struct):
    """Lines of one function in the making.

    `memo` maps pure operations of the stretch that is being written to their results; it is forgotten where control
    flow joins (`forget`). `needed` are the declarations and routines that the text refers to, by name.
    """

    lines: list[str] = field(default_factory=list)
    memo: dict[str, str] = field(default_factory=dict)
    needed: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def name(self) -> str:
        """A fresh name."""
        self.count += 1
        return f"%t{self.count}"

    def pure(self, text: str) -> str:
        """The result of an operation that depends on its operands alone; an equal one is not written twice."""
        found = self.memo.get(text)
        if found is None:
            found = self.result(text)
            self.memo[text] = found
        return found

    def result(self, text: str) -> str:
        """The result of an operation that may differ each time: a load, a call."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def effect(self, text: str) -> None:
        """An operation without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begins a block; results of others are not assumed to be there."""
        self.lines.append(f"{name}:")
        self.forget()

    def forget(self) -> None:
        """Forgets all results of pure operations."""
        self.memo.clear()

    def require(self, name: str) -> str:
        """The name of a function, which the module will then contain."""
        self.needed[name] = None
        return f"@{name}"
