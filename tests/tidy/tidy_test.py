#!/usr/bin/env python3
"""Tries each check of tidy on small trees: what it must find, and what it must leave alone."""

import pathlib
import sys
import tempfile
import unittest

import headers
import layering
import sizes
import words
from scanner import blanked, functions
from tree import Tree, folder_of


def texts(breaches):
    return [str(breach) for breach in breaches]


def body(lines):
    return "".join("  work();\n" for _ in range(lines))


class Folders(unittest.TestCase):
    def test_nested_layers_have_two_parts(self):
        self.assertEqual(folder_of("src/base/log.h"), "src/base")
        self.assertEqual(folder_of("src/engine/host/lane.h"), "src/engine")
        self.assertEqual(folder_of("transports/transport.h"), "transports")
        self.assertEqual(folder_of("transports/shm/slot.cc"), "transports/shm")
        self.assertEqual(folder_of("bench/common/table.h"), "bench")
        self.assertEqual(folder_of("include/seto/seto.h"), "include")


class Layering(unittest.TestCase):
    def check(self, files):
        return texts(layering.check(Tree(files)))

    def test_downward_includes_are_allowed(self):
        files = {"src/base/log.h": "#include <mutex>\n", "src/plan/plan.h": '#include "src/base/log.h"\n',
                 "src/engine/host.cc": '#include "src/plan/plan.h"\n#include "src/engine/host.h"\n', "src/engine/host.h": ""}
        self.assertEqual(self.check(files), [])

    def test_upward_include_is_named_with_its_line(self):
        files = {"src/plan/plan.h": "", "src/base/log.h": '#pragma once\n#include "src/plan/plan.h"\n'}
        self.assertEqual(self.check(files), ["src/base/log.h:2: src/base may not include src/plan (src/plan/plan.h)"])

    def test_algorithms_know_no_transport_and_no_engine(self):
        files = {"transports/transport.h": "", "src/engine/engine.h": "",
                 "algorithms/ring.cc": '#include "transports/transport.h"\n#include "src/engine/engine.h"\n'}
        self.assertEqual(len(self.check(files)), 2)

    def test_transport_may_not_include_another_except_slots(self):
        files = {"transports/slots/ring.h": "", "transports/local/local.h": "",
                 "transports/shm/a.cc": '#include "transports/slots/ring.h"\n',
                 "transports/shm/b.cc": '#include "transports/local/local.h"\n'}
        self.assertEqual(self.check(files), ["transports/shm/b.cc:1: transports/shm may not include transports/local "
                                             "(transports/local/local.h)"])

    def test_engine_sees_the_interface_of_transports_only(self):
        files = {"transports/transport.h": "", "transports/shm/shm.h": "",
                 "src/engine/a.cc": '#include "transports/transport.h"\n', "src/engine/b.cc": '#include "transports/shm/shm.h"\n'}
        self.assertEqual(len(self.check(files)), 1)

    def test_mutual_includes_are_found(self):
        files = {"src/base/a.h": '#include "src/plan/b.h"\n', "src/plan/b.h": '#include "src/base/a.h"\n'}
        self.assertTrue(any("include each other" in text for text in self.check(files)))

    def test_public_header_by_either_name(self):
        files = {"include/seto/seto.h": "", "examples/a.c": "#include <seto/seto.h>\n",
                 "src/engine/b.cc": '#include "include/seto/seto.h"\n'}
        self.assertEqual(self.check(files), ["src/engine/b.cc:1: src/engine may not include include (include/seto/seto.h)"])

    def test_unknown_folder_must_be_placed_first(self):
        self.assertIn("has no place in the layering", self.check({"src/helpers/x.h": ""})[0])

    def test_tests_and_micro_benchmarks_look_inside(self):
        files = {"src/engine/engine.h": "", "tests/unit/engine/a_test.cc": '#include "src/engine/engine.h"\n',
                 "bench/micro/a_bench.cc": '#include "src/engine/engine.h"\n'}
        self.assertEqual(self.check(files), [])

    def test_the_table_itself_has_no_circle(self):
        reach = {folder: set(targets) for folder, targets in layering.ALLOWED.items()}
        for _ in reach:
            reach = {folder: targets | {far for near in targets for far in reach[near]} for folder, targets in reach.items()}
        self.assertEqual([folder for folder, targets in reach.items() if folder in targets], [])


class Scanner(unittest.TestCase):
    def names(self, code):
        return [(function.name, function.first, function.last) for function in functions(code)]

    def test_comments_and_literals_become_spaces(self):
        code = 'a("}{"); // }\nb(\'{\'); /* }\n} */ c(1\'000, R"x(}\n)x");\n'
        self.assertNotIn("{", blanked(code))
        self.assertNotIn("}", blanked(code))
        self.assertIn("1'000", blanked(code))
        self.assertEqual(blanked(code).count("\n"), code.count("\n"))

    def test_free_function_from_signature_to_brace(self):
        self.assertEqual(self.names("int f(int a,\n      int b) {\n  return a;\n}\n"), [("f", 1, 4)])

    def test_methods_inside_classes_and_namespaces(self):
        code = "namespace a {\nclass B final : public C {\n public:\n  int get() const { return 1; }\n  void set();\n};\n" \
               "void B::set() {\n}\n}\n"
        self.assertEqual(self.names(code), [("get", 4, 4), ("B::set", 7, 8)])

    def test_constructor_with_initialisers(self):
        self.assertEqual(self.names("Fd::Fd(int n) : number_(n) {\n}\n"), [("Fd::Fd", 1, 2)])

    def test_control_flow_and_lambdas_belong_to_the_function_around(self):
        code = "void f() {\n  for (;;) {\n    if (x) {\n    }\n  }\n  auto g = [&](int a) {\n    return a;\n  };\n}\nvoid h() {}\n"
        self.assertEqual(self.names(code), [("f", 1, 9), ("h", 10, 10)])

    def test_templates_operators_and_attributes(self):
        code = "template <class T, int N = f(3)>\n[[nodiscard]] bool operator==(const T& a, const T& b) {\n  return true;\n}\n"
        self.assertEqual([(function.first, function.last) for function in functions(code)], [(1, 4)])

    def test_tables_and_enumerations_are_no_functions(self):
        code = "constexpr int kTable[] = {\n  f(1), 2};\nenum class E : int { a, b };\nstruct S { int a = g(2); };\n"
        self.assertEqual(self.names(code), [])

    def test_macro_with_unbalanced_brace_does_not_disturb(self):
        code = "#define OPEN(x) \\\n  if (x) {\nvoid f() {\n}\n"
        self.assertEqual(self.names(code), [("f", 3, 4)])

    def test_test_macro_is_a_function(self):
        self.assertEqual(self.names("TEST(Suite, Name) {\n  f();\n}\n"), [("TEST", 1, 3)])


class Sizes(unittest.TestCase):
    README = {"src/base/README.md": "purpose\n"}

    def check(self, files):
        return texts(sizes.check(Tree({**self.README, **files})))

    def test_function_at_the_limit_and_one_above(self):
        self.assertEqual(self.check({"src/base/a.cc": f"void f() {{\n{body(68)}}}\n"}), [])
        self.assertEqual(self.check({"src/base/a.cc": f"\nvoid f() {{\n{body(69)}}}\n"}),
                         ["src/base/a.cc:2: f has 71 lines: a function has at most 70"])

    def test_long_file(self):
        files = {"src/base/a.cc": "\n" * 601, "src/base/b.cc": "", "src/base/c.cc": ""}
        self.assertEqual(self.check(files), ["src/base/a.cc:601: 601 lines: a file has at most 600"])

    def test_median(self):
        self.assertIn("the median file has 151 lines", self.check({"src/base/a.cc": "\n" * 151})[0])

    def test_readme_missing_and_too_long(self):
        self.assertEqual(texts(sizes.check(Tree({"src/plan/a.cc": ""}))),
                         ["src/plan/README.md:0: is missing: each folder has one"])
        self.assertIn("at most 60", self.check({"src/base/README.md": "x\n" * 61})[0])

    def test_ratio_counts_tests_against_sources(self):
        tree = Tree({"tests/unit/a_test.cc": "\n" * 8, "src/base/a.cc": "\n" * 10, "bench/b.cc": "\n" * 99})
        self.assertAlmostEqual(sizes.test_ratio(tree), 0.8)
        self.assertIn("0.80 (goal 0.8: reached)", sizes.report(tree))


class Words(unittest.TestCase):
    def check(self, name, text):
        return texts(words.check(Tree({name: text})))

    def test_paths_of_one_machine(self):
        for path in ("/home/x/y", "/root/x", "/work/x"):
            self.assertEqual(len(self.check("README.md", f"see {path}\n")), 1, path)
        for path in ("src/work/x", "a/root/b", "/dev/shm", "https://example.org/home/x"):
            self.assertEqual(self.check("README.md", f"see {path}\n"), [], path)

    def test_unfinished_marks_are_found_in_comments(self):
        self.assertEqual(self.check("src/base/a.cc", "\n// TODO: more\n"),
                         ["src/base/a.cc:2: an unfinished mark: finish it, or say in the README what is missing: TODO"])
        self.assertEqual(len(self.check("src/base/a.cc", "// FIXME\n")), 1)

    def test_text_of_others(self):
        for text in ("Copyright (c) 2020 Somebody", "// Copyright 2019 Somebody", "// SPDX-License-Identifier: MIT"):
            self.assertEqual(len(self.check("src/base/a.h", text)), 1, text)
        self.assertEqual(self.check("LICENSE", "Copyright (c)"), [])
        self.assertEqual(self.check("README.md", "the copyright of its authors"), [])

    def test_sleeping(self):
        for call in ("std::this_thread::sleep_for(1ms)", "usleep(3)", "sleep (1)", "nanosleep(&t, nullptr)"):
            self.assertEqual(len(self.check("tests/unit/a_test.cc", f"{call};\n")), 1, call)

    def test_sleeping_in_words_or_in_tools_is_fine(self):
        self.assertEqual(self.check("src/base/a.cc", "// never sleep(1)\nsleepers(2); epoll_sleep();\n"), [])
        self.assertEqual(self.check("dev", "sleep(1)\n"), [])


class Headers(unittest.TestCase):
    COMPILERS = headers.Compilers("cc", "c++")

    def check(self, files, cache=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return texts(headers.check(Tree(files, root), self.COMPILERS, cache))

    def test_header_that_needs_another_is_found(self):
        files = {"src/base/good.h": "#pragma once\n#include <string>\nstd::string good();\n",
                 "src/base/bad.h": "#pragma once\nstd::string bad();\n"}
        breaches = self.check(files)
        self.assertEqual(len(breaches), 1)
        self.assertTrue(breaches[0].startswith("src/base/bad.h:1: does not compile alone"))

    def test_public_header_is_c99(self):
        breaches = self.check({"include/seto/seto.h": "#pragma once\nstruct S { int a; };\nint f(enum E : int { a } e);\n"})
        self.assertTrue(any("(cc)" in breach for breach in breaches))
        self.assertEqual(self.check({"include/seto/seto.h": "#pragma once\nstruct seto { int a; };\n"}), [])

    def test_inclusion_fragments_are_left_alone(self):
        self.assertEqual(self.check({"src/device/reduce-inl.h": "this is no header\n"}), [])

    def test_cache_follows_the_text_of_what_is_included(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = pathlib.Path(folder)
            good = {"src/base/a.h": "#pragma once\ntypedef int Number;\n",
                    "src/base/b.h": '#pragma once\n#include "src/base/a.h"\nNumber f();\n'}
            self.assertEqual(self.check(good, cache), [])
            self.assertEqual(len(list(cache.iterdir())), 2)
            bad = {**good, "src/base/a.h": "#pragma once\ntypedef int Other;\n"}
            self.assertEqual(len(self.check(bad, cache)), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
