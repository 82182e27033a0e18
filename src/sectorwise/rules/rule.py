"""Turns a code, a name and a check into a rule that can be listed, explained and run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sectorwise.findings import Finding, Severity
from sectorwise.model.kernel_model import KernelModel

Check = Callable[[KernelModel], Iterable[Finding]]
"""A pure function of the model of a kernel."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault that can be found: `name` states it, `manual` is its page, whose first paragraph sums it up.

    A rule that `follows_caches` finds nothing in a model without traffic.
    """

    code: str
    name: str
    severity: Severity
    check: Check
    manual: str
    follows_caches: bool = False

    @property
    def summary(self) -> str:
        """The manual's first paragraph, on one line."""
        return " ".join(self.manual.split("\n\n", maxsplit=1)[0].split())
