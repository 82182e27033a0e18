from __future__ import annotations

import pytest

from sectorwise.machine.effects import File, Slot, destinations, sources
from tests.machine.lanes import instruction


def slots(names: str) -> set[Slot]:
    found: set[Slot] = set()
    for name in names.split():
        letters = name.rstrip("0123456789")
        found.add((File(letters), int(name[len(letters) :])))
    return found


EFFECTS = [
    ("IADD3 R8, P0, P1, R2, -R3, R4", "R8 P0 P1", "R2 R3 R4"),
    ("IADD3.X R8, R2, UR3, RZ, P0, !PT", "R8", "R2 UR3 P0"),
    ("@!P2 IMAD.WIDE R8, R2, 0x4, R6", "R8 R9", "P2 R2 R6 R7"),
    ("IMAD.WIDE.U32.X R8, P1, R2, R3, R4, P0", "R8 R9 P1", "R2 R3 R4 R5 P0"),
    ("IMAD.HI.U32 R8, R2, R3, R4", "R8", "R2 R3 R4 R5"),
    ("LEA.HI.X R9, R2, UR5, R3, 0x2, P0", "R9", "R2 UR5 R3 P0"),
    ("LOP3.LUT P0, RZ, R2, 0x8, RZ, 0xc0, !PT", "P0", "R2"),
    ("PLOP3.LUT P0, PT, P1, P2, UP3, 0x80, 0x0", "P0", "P1 P2 UP3"),
    ("ISETP.GE.U32.AND.EX P0, PT, R3, R5, PT, P1", "P0", "R3 R5 P1"),
    ("UISETP.GE.AND UP0, UPT, UR4, UR5, UPT", "UP0", "UR4 UR5"),
    ("SEL R8, R2, R3, P0", "R8", "R2 R3 P0"),
    ("FCHK P0, R2, R3", "P0", "R2 R3"),
    ("DFMA R8, -R2, R4, |R6|", "R8 R9", "R2 R3 R4 R5 R6 R7"),
    ("F2F.F64.F32 R8, R2", "R8 R9", "R2"),
    ("F2F.F32.F64 R8, R2", "R8", "R2 R3"),
    ("F2I.U64.F64.TRUNC R8, R2", "R8 R9", "R2 R3"),
    ("I2F.F64.S64 R8, R2", "R8 R9", "R2 R3"),
    ("I2F.RP R8, R2", "R8", "R2"),
    ("LDG.E.128.CONSTANT R8, desc[UR4][R2.64+0x10]", "R8 R9 R10 R11", "UR4 UR5 R2 R3"),
    ("LDG.E.U8 R8, [R2.U32+UR4]", "R8", "R2 UR4 UR5"),
    ("LDS.64 R8, [R2.X4+UR4]", "R8 R9", "R2 UR4"),
    ("STG.E.64 desc[UR4][R2.64], R6", "", "UR4 UR5 R2 R3 R6 R7"),
    ("STS [R2], RZ", "", "R2"),
    ("ATOMG.E.ADD.64.STRONG.GPU PT, R8, desc[UR4][R2.64], R6", "R8 R9", "UR4 UR5 R2 R3 R6 R7"),
    ("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R6", "", "UR4 UR5 R2 R3 R6"),
    ("ATOMS.CAST.SPIN P0, [R7], R8, R9", "P0", "R7 R8 R9"),
    ("LDSM.16.M88.4 R8, [R2]", "R8 R9 R10 R11", "R2"),
    ("LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64], P0", "", "R9 UR6 UR7 R2 R3 P0"),
    ("LDC.64 R8, c[0x0][R2+0x10]", "R8 R9", "R2"),
    ("S2R R8, SR_TID.X", "R8", ""),
    ("CS2R R8, SRZ", "R8 R9", ""),
    ("CS2R.32 R8, SR_CLOCKLO", "R8", ""),
    ("SHFL.UP P0, R8, R2, R3, RZ", "P0 R8", "R2 R3"),
    ("VOTE.ANY R8, P0, P1", "R8 P0", "P1"),
    ("REDUX.SUM UR4, R2", "UR4", "R2"),
    ("R2P PR, R2, 0x5", "P0 P2", "R2"),
    ("P2R R8, PR, RZ, 0x7f", "R8", "P0 P1 P2 P3 P4 P5 P6"),
    ("HMMA.16816.F32 R8, R12, R16, R20", "R8 R9 R10 R11", "R12 R13 R14 R15 R16 R17 R18 R19 R20 R21 R22 R23"),
    ("HGMMA.64x16x16.F32 R32, gdesc[UR8], RZ, !UPT, gsb0", "R32 R33 R34 R35 R36 R37 R38 R39", ""),
    ("HGMMA.64x16x16.F16 R40, gdesc[UR8], RZ, !UPT, gsb0", "R40 R41 R42 R43", ""),
    ("LDTM.x4 R8, tmem[UR4]", "R8 R9 R10 R11", ""),
    ("USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "UP0", ""),
    ("USETMAXREG.DEALLOC.CTAPOOL 0x28", "", ""),
    ("MOV.64 R8, R2", "R8 R9", "R2 R3"),
    ("SHF.L.U64.HI R8, R2, 0x3, R4", "R8", "R2 R4"),
    ("@P0 BRA P1, `(.L_x_1)", "", "P0 P1"),
    ("@!PT LDS RZ, [RZ]", "", ""),
    ("WHATEVER.64 R8, P3, R2, R4", "R8 R9 P3", "R2 R3 R4 R5"),
]


@pytest.mark.parametrize(("text", "written", "read"), EFFECTS)
def test_effects(text: str, written: str, read: str) -> None:
    code = instruction(text)
    assert set(destinations(code)) == slots(written)
    assert set(sources(code)) == slots(read)
