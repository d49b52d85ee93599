#!/usr/bin/env python3
"""The checks of machine code, on code that obeys the protocol and on code that does not."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sass"))

import checks  # noqa: E402
import sass  # noqa: E402

# A kernel that waits for a flag, moves vectors, meets, and stores a flag. Lines are instructions; a label ends with a colon.
GOOD = """
LOOK:
LDG.E.64.STRONG.SYS R4, desc[UR6][R24.64]
CCTL.IVALL
ISETP.GE.U32.AND P0, PT, R4, R20, PT
@P0 BRA READY
LDG.E.STRONG.SYS R6, desc[UR6][R20.64]
NANOSLEEP 0x14
BRA LOOK
READY:
BAR.RED.OR.DEFER_BLOCKING 0x0, P0
MOVE:
LDG.E.128 R8, desc[UR6][R30.64]
LDG.E.128 R12, desc[UR6][R30.64+0x200]
IMAD.WIDE.U32 R30, R63, 0x400, R30
STG.E.128 desc[UR6][R32.64], R8
STG.E.128 desc[UR6][R32.64+0x200], R12
IMAD.WIDE.U32 R32, R63, 0x400, R32
VIADD R2, R2, 0x1
ISETP.GE.U32.AND P1, PT, R2, R3, PT
@!P1 BRA MOVE
TWICE:
LDG.E.128 R8, desc[UR6][R30.64]
STG.E.128 desc[UR6][R32.64], R8
STG.E.128 desc[UR6][R34.64], R8
VIADD R2, R2, 0x1
ISETP.GE.U32.AND P1, PT, R2, R3, PT
@!P1 BRA TWICE
BAR.SYNC.DEFER_BLOCKING 0x0
TELL:
LDG.E R40, desc[UR6][R36.64]
MEMBAR.ALL.SYS
ERRBAR
STG.E.64.STRONG.SYS desc[UR6][R2.64], R6
VIADD R2, R2, 0x1
ISETP.GE.U32.AND P1, PT, R2, R3, PT
@!P1 BRA TELL
EXIT
"""


def printed(code, name="kernel", architecture="sm_90"):
    """The code as cuobjdump prints it."""
    address, labels, lines = 0, {}, []
    for line in code.split("\n"):
        if line.endswith(":"):
            labels[line[:-1]] = address
        elif line:
            lines.append((address, line))
            address += 16
    text = [f"\t.target\t{architecture}", f"\t\tFunction : {name}"]
    for address, line in lines:
        for label, target in labels.items():
            line = line.replace(f" {label}", f" {target:#x}")
        text += [f"        /*{address:04x}*/                   {line} ;    /* 0x00000a00ff017b82 */", " " * 91 + "/* 0x000ff00000000800 */"]
    return "\n".join(text)


def function_of(code):
    (function,) = sass.functions_of(printed(code))
    return function


def faults(old="", new=""):
    code = GOOD
    if old:
        assert old in code, old
        code = code.replace(old, new, 1)
    return checks.protocol_faults(function_of(code))


class Reading(unittest.TestCase):
    def test_instructions(self):
        function = function_of(GOOD)
        self.assertEqual((function.name, function.architecture, len(function.code)), ("kernel", "sm_90", 32))
        self.assertEqual(function.code[3].predicate, "@P0")
        self.assertEqual(function.code[3].target, function.code[7].place)
        self.assertEqual(function.code[0].modifiers, ["E", "64", "STRONG", "SYS"])

    def test_flow(self):
        following = function_of(GOOD).successors
        self.assertEqual(following[3], [4, 7])
        self.assertEqual(following[6], [0])
        self.assertEqual(following[31], [])

    def test_threads_that_were_split_meet_again(self):
        function = function_of("BSSY B0, MEET\n@P0 BRA OTHER\nNOP\nBSYNC B0\nOTHER:\nNOP\nBSYNC B0\nMEET:\nEXIT")
        self.assertEqual(function.successors[3], [6])
        self.assertEqual(function.successors[5], [6])

    def test_a_jump_by_a_table_may_go_wherever_nothing_falls_into(self):
        function = function_of("BRX R2 -0x30\nNOP\nEXIT\nNOP\nEXIT")
        self.assertEqual(function.successors[0], [1, 3])


class Protocol(unittest.TestCase):
    def test_code_that_obeys_has_no_fault(self):
        self.assertEqual(faults(), [])

    def test_a_flag_store_without_a_barrier_is_found(self):
        (fault,) = faults("BAR.SYNC.DEFER_BLOCKING 0x0", "NOP")
        self.assertIn("no barrier of the block after kernel for sm_90: STG.E.128", fault)

    def test_a_path_around_the_barrier_is_found(self):
        (fault,) = faults("BAR.SYNC.DEFER_BLOCKING 0x0", "@P2 BRA TELL\nBAR.SYNC.DEFER_BLOCKING 0x0")
        self.assertIn("no barrier", fault)

    def test_a_flag_store_of_a_smaller_scope_is_found(self):
        (fault,) = faults("STG.E.64.STRONG.SYS", "STG.E.64.STRONG.GPU")
        self.assertIn("its scope is not the system", fault)

    def test_a_flag_store_that_is_weak_is_no_flag_store(self):
        self.assertIn("no flag is stored", faults("STG.E.64.STRONG.SYS", "STG.E.64")[0])

    def test_a_weak_flag_load_is_found(self):
        self.assertTrue(any("not loaded as strong" in fault for fault in faults("LDG.E.64.STRONG.SYS", "LDG.E.64")))
        self.assertTrue(any("not loaded as strong" in fault for fault in faults("LDG.E.64.STRONG.SYS", "LDG.E.64.STRONG.GPU")))
        self.assertTrue(any("not loaded as strong" in fault for fault in faults("LDG.E.STRONG.SYS", "LDG.E")))

    def test_an_acquire_that_keeps_old_lines_is_found(self):
        (fault,) = faults("CCTL.IVALL", "NOP")
        self.assertIn("old lines of the cache are not dropped", fault)

    def test_a_marked_word_needs_no_acquire_and_a_flag_does(self):
        look = "LDG.E.64.STRONG.SYS R50, desc[UR6][R52.64]\n"
        marked = "WORD:\nNANOSLEEP 0x14\n" + look + "NOP\nISETP.NE.AND P3, PT, R51, R22, PT\n@P3 BRA WORD\nREADY:"
        self.assertEqual(faults("READY:", marked), [])
        reused = marked.replace("READY:", "ISETP.GE.U32.AND.EX P3, PT, R51, R23, PT, P3\nREADY:")
        self.assertEqual(faults("READY:", reused), [])
        flag = marked.replace("NE.AND P3, PT, R51", "GE.U32.AND P3, PT, R50")
        self.assertIn("old lines of the cache are not dropped", faults("READY:", flag)[0])
        both = marked.replace("R51", "R50").replace("\n@P3", "\nISETP.NE.AND.EX P3, PT, R51, R23, PT, P3\n@P3")
        self.assertIn("old lines of the cache are not dropped", faults("READY:", both)[0])

    def test_a_loop_without_a_flag_or_no_loop_at_all_is_found(self):
        self.assertIn("no loop waits", faults("NANOSLEEP 0x14", "NOP")[0])
        self.assertTrue(any("no loop waits" in fault for fault in faults("LDG.E.64.STRONG.SYS R4", "LDG.E.STRONG.SYS R4")))


class Loops(unittest.TestCase):
    def loops(self, code=GOOD):
        return checks.inner_loops(function_of(code))

    def test_a_move(self):
        one, two = self.loops()
        self.assertEqual((one.work, one.sources, one.targets, one.needed, one.instructions, one.narrow), ("move", 1, 1, 4, 9, 0))
        self.assertEqual((two.work, two.sources, two.targets, two.needed, two.instructions), ("move", 1, 2, 3, 6))
        self.assertAlmostEqual(one.cost, 9 / 4)

    def test_a_sum_needs_its_additions_and_no_pointers(self):
        add = "FADD R8, R8, R12\nFADD R9, R9, R13\nFADD R10, R10, R14\nFADD R11, R11, R15\nIMAD.MOV.U32 R1, RZ, RZ, R2\n"
        code = GOOD.replace("STG.E.128 desc[UR6][R32.64], R8\nSTG.E.128 desc[UR6][R32.64+0x200], R12\n", add + "STG.E.128 desc[UR6][R32.64], R8\n")
        code = code.replace("LDG.E.128 R12, desc[UR6][R30.64+0x200]", "LDG.E.128 R12, desc[UR6][R28.64]")
        one = self.loops(code)[0]
        self.assertEqual((one.work, one.sources, one.targets, one.needed, one.instructions), ("sum", 2, 1, 7, 13))

    def test_of_two_loops_that_do_the_same_the_larger_one_is_judged(self):
        move = GOOD[GOOD.index("MOVE:") : GOOD.index("TWICE:")]
        small = move.replace("MOVE", "REST").replace("LDG.E.128 R12, desc[UR6][R30.64+0x200]\n", "").replace("STG.E.128 desc[UR6][R32.64+0x200], R12\n", "")
        code = GOOD.replace("TWICE:", small + "TWICE:", 1)
        self.assertEqual([loop.needed for loop in self.loops(code)], [4, 2, 3])
        self.assertEqual([loop.needed for loop in checks.judged(self.loops(code))], [4, 3])

    def test_registers_of_an_instruction(self):
        one = sass.Instruction(0, "", "IADD3", "R68, P3, R71, R68.reuse, RZ")
        self.assertEqual((one.written, one.read), ({"R68", "P3"}, {"R71", "R68"}))
        wide = sass.Instruction(0, "@!P2", "IMAD.WIDE.U32", "R60, R63, 0x400, R30")
        self.assertEqual((wide.written, wide.read), ({"R60", "R61"}, {"R63", "R30", "R31", "P2"}))
        test = sass.Instruction(0, "", "ISETP.NE.AND", "P2, PT, R72, RZ, PT")
        self.assertEqual((test.written, test.read), ({"P2"}, {"R72"}))
        store = sass.Instruction(0, "", "STG.E.128", "desc[UR6][R32.64+0x200], R12")
        self.assertEqual((store.written, store.address), (set(), {"R32", "R33"}))

    def test_an_addition_for_an_address_is_not_needed(self):
        code = GOOD.replace("IMAD.WIDE.U32 R30, R63, 0x400, R30", "IADD3 R30, P4, R30, R71, RZ\nIMAD.X R31, R31, 0x1, R72, P4")
        self.assertEqual((self.loops(code)[0].work, self.loops(code)[0].needed, self.loops(code)[0].instructions), ("move", 4, 10))

    def test_other_work_is_not_judged(self):
        code = GOOD.replace("STG.E.128 desc[UR6][R32.64], R8\n", "FMNMX R8, R8, R12, PT\nSTG.E.128 desc[UR6][R32.64], R8\n", 1)
        self.assertEqual(self.loops(code)[0].work, "FMNMX")
        self.assertEqual(len(checks.judged(self.loops(code))), 1)

    def test_costs_narrow_accesses_and_missing_moves_are_faults(self):
        cheap = GOOD.replace("IMAD.WIDE.U32 R30, R63, 0x400, R30\n", "").replace("IMAD.WIDE.U32 R32, R63, 0x400, R32\n", "")
        self.assertEqual(checks.loop_faults(function_of(cheap))[1:], ["kernel for sm_90: the move at 0xf0 takes 2.00 instructions for each that it needs, above 1.25"])
        narrow = checks.loop_faults(function_of(GOOD.replace("LDG.E.128 R12", "LDG.E.64 R12")))
        self.assertTrue(any("1 accesses of the move" in fault for fault in narrow), narrow)
        missing = checks.loop_faults(function_of(GOOD.replace("STG.E.128 desc[UR6][R34.64], R8\n", "")))
        self.assertTrue(any("is missing" in fault for fault in missing), missing)


if __name__ == "__main__":
    unittest.main()
