"""Machine code that is rewritten reads as what was wanted, and nothing else of it changes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tools.fuzz.catalogue.families import PLAN, REWRITTEN_FROM, choose_character
from tools.fuzz.coverage import name_form
from tools.fuzz.generate import generate
from tools.fuzz.on_engine import compile_kernels, read_kernels
from tools.fuzz.rewrites import restore, rewrite

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from tools.fuzz.generate import FuzzKernel

WANTED = {"LEA.X", "IMAD.IADD.U32", "SHF.R.W.S32.HI", "STG.E.STRONG.SYS", "LDG.E.LU.64"}
"""Forms that the compiler made one of at most."""


@cache
def compile_some() -> tuple[list[FuzzKernel], bytes, dict[str, Kernel]]:
    kernels = [generate(seed) for seed in range(REWRITTEN_FROM, REWRITTEN_FROM + 10)]
    plain, _ = compile_kernels(kernels)
    return kernels, plain, read_kernels(plain)


def test_instructions_keep_their_opcode_and_their_place() -> None:
    kernels, plain, before = compile_some()
    after = read_kernels(rewrite(plain, before, {each.name: each.seed for each in kernels}))
    made = set()
    for kernel in kernels:
        pairs = zip(before[kernel.name].instructions, after[kernel.name].instructions, strict=True)
        for old, new in ((old, new) for old, new in pairs if old.text != new.text):
            assert (old.opcode, old.offset, old.guard) == (new.opcode, new.offset, new.guard)
            # A carry is one operand more; what a shorter form leaves out is not printed.
            assert new.operands[: len(old.operands)] == old.operands or new.opcode == "LDGSTS"
            made.add(name_form(new))
    assert made >= WANTED
    forms = [name_form(each) for kernel in before.values() for each in kernel.instructions]
    assert sum(form in WANTED for form in forms) < len(WANTED)


def test_code_that_is_restored_is_what_the_compiler_made() -> None:
    kernels, plain, before = compile_some()
    names = [each.name for each in kernels]
    cubin = rewrite(plain, before, {each.name: each.seed for each in kernels})
    assert cubin != plain
    assert restore(cubin, plain, names) == plain
    some = read_kernels(restore(cubin, plain, names[:1]))
    assert some[names[0]].instructions == before[names[0]].instructions
    assert some[names[1]].instructions != before[names[1]].instructions


def test_a_seed_that_stands_for_an_earlier_one_is_that_kernel_on_other_inputs() -> None:
    first = next(first for first, characters in PLAN if isinstance(characters[0], int) and first == 10560)
    earlier = choose_character(first)
    assert isinstance(earlier, int)
    again, original = generate(first), generate(earlier)
    assert again.source == original.source.replace(f"fuzz_{earlier}", f"fuzz_{first}")
    assert (again.seed, again.threads, again.outputs) == (first, original.threads, original.outputs)
