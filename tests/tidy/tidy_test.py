#!/usr/bin/env python3
"""Tests each check of tidy on small trees: breaches that it must find, and text that it must accept."""

import pathlib
import sys
import tempfile
import unittest

import headers
import layering
import paths
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
        files = {"transports/slots/ring.h": "", "transports/tcp/tcp.h": "",
                 "transports/shm/a.cc": '#include "transports/slots/ring.h"\n',
                 "transports/shm/b.cc": '#include "transports/tcp/tcp.h"\n'}
        self.assertEqual(self.check(files), ["transports/shm/b.cc:1: transports/shm may not include transports/tcp "
                                             "(transports/tcp/tcp.h)"])

    def test_resume_knows_no_sockets(self):
        files = {"src/base/a.h": "", "src/net/socket.h": "",
                 "transports/resume/a.cc": '#include "src/base/a.h"\n#include "src/net/socket.h"\n'}
        self.assertEqual(self.check(files), ["transports/resume/a.cc:2: transports/resume may not include src/net (src/net/socket.h)"])

    def test_one_file_of_core_names_the_transports(self):
        files = {"transports/shm/shm.h": "", "transports/tcp/tcp.h": "", "transports/transport.h": "",
                 "src/core/connect/transport_list.cc": '#include "transports/shm/shm.h"\n#include "transports/tcp/tcp.h"\n',
                 "src/core/connect/context.cc": '#include "transports/transport.h"\n#include "transports/tcp/tcp.h"\n',
                 "src/core/record/a.cc": '#include "transports/shm/shm.h"\n'}
        self.assertEqual(self.check(files), [
            "src/core/connect/context.cc:2: only src/core/connect/transport_list.cc may name a transport (transports/tcp/tcp.h)",
            "src/core/record/a.cc:1: only src/core/connect/transport_list.cc may name a transport (transports/shm/shm.h)"])

    def test_core_does_not_name_the_slots_of_shared_memory_at_all(self):
        files = {"transports/slots/pool.h": "", "src/core/connect/transport_list.cc": '#include "transports/slots/pool.h"\n'}
        self.assertEqual(self.check(files), ["src/core/connect/transport_list.cc:1: src/core may not include transports/slots "
                                             "(transports/slots/pool.h)"])

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

    def test_a_room_includes_only_rooms_before_it(self):
        files = {"src/core/call/ids.h": '#include "src/core/record/entry.h"\n', "src/core/record/entry.h": ""}
        self.assertEqual(self.check(files), [])
        files = {"src/core/call/ids.h": "", "src/core/record/entry.h": '#include "src/core/call/ids.h"\n'}
        self.assertEqual(self.check(files), ["src/core/record/entry.h:1: room record of src/core may not include room call, "
                                             "which comes after it (src/core/call/ids.h)"])

    def test_a_file_of_an_unknown_room_is_found(self):
        files = {"src/core/attic/a.h": '#include "src/core/call/ids.h"\n', "src/core/call/ids.h": ""}
        self.assertIn("src/core has no room attic", self.check(files)[0])

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
        files = {"src/base/a.cc": "\n" * 451, "src/base/b.cc": "", "src/base/c.cc": ""}
        self.assertEqual(self.check(files), ["src/base/a.cc:451: 451 lines: a file has at most 450"])

    def test_a_long_header_is_fine_until_another_folder_includes_it(self):
        files = {"src/base/a.h": "\n" * 151, "src/base/a.cc": '#include "src/base/a.h"\n', "src/base/b.cc": ""}
        self.assertEqual(self.check(files), [])
        self.assertIn("a header that other folders include has at most 150",
                      self.check({**files, "src/plan/b.cc": '#include "src/base/a.h"\n', "src/plan/README.md": ""})[0])

    def test_a_header_and_its_source_are_one_unit(self):
        files = {f"src/base/f{number}.{suffix}": "" for number in range(18) for suffix in ("h", "cc")}
        self.assertEqual(self.check(files), [])
        self.assertEqual(self.check({**files, "src/base/more.h": ""}),
                         ["src/base:0: 19 units (a header and its source are one): a folder has at most 18"])

    def test_median(self):
        self.assertIn("the median file has 151 lines", self.check({"src/base/a.cc": "\n" * 151})[0])

    def test_readme_missing_and_too_long(self):
        self.assertEqual(texts(sizes.check(Tree({"src/plan/a.cc": ""}))),
                         ["src/plan/README.md:0: is missing: each folder has one"])
        self.assertIn("at most 60", self.check({"src/base/README.md": "x\n" * 61})[0])

    def test_each_room_has_a_short_readme(self):
        files = {"src/core/README.md": "", "src/core/call/a.cc": ""}
        self.assertEqual(self.check(files), ["src/core/call/README.md:0: is missing: each room has one"])
        self.assertIn("at most 30", self.check({**files, "src/core/call/README.md": "x\n" * 31})[0])

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
        for text in ("Copyright (c) 2020 A. Person", "// Copyright 2019 A. Person", "// SPDX-License-Identifier: MIT"):
            self.assertEqual(len(self.check("src/base/a.h", text)), 1, text)
        self.assertEqual(self.check("LICENSE", "Copyright (c)"), [])
        self.assertEqual(self.check("README.md", "the copyright of its authors"), [])

    def test_sleeping(self):
        for call in ("std::this_thread::sleep_for(1ms)", "usleep(3)", "sleep (1)", "nanosleep(&t, nullptr)"):
            self.assertEqual(len(self.check("tests/unit/a_test.cc", f"{call};\n")), 1, call)

    def test_sleeping_in_words_or_in_tools_is_fine(self):
        self.assertEqual(self.check("src/base/a.cc", "// never sleep(1)\nsleepers(2); epoll_sleep();\n"), [])
        self.assertEqual(self.check("dev", "sleep(1)\n"), [])


    def test_words_of_stories(self):
        self.assertEqual(self.check("src/net/a.h", "// The stranger waits.\n"),
                         ["src/net/a.h:1: 'stranger' is not a term of this field: write unauthenticated peer or connection"])
        for text in ("Nobody reads it.", "int neighbours = 2;", "the front door", "see the bulletins"):
            self.assertEqual(len(self.check("docs/a.md", text)), 1, text)

    def test_words_that_only_contain_one_of_them_are_fine(self):
        for text in ("slots::Doorbell rings", "int doors_open = 1;", "whatever the size is", "GuestOS"):
            self.assertEqual(self.check("docs/a.md", text), [], text)

    def test_a_comment_begins_with_its_subject(self):
        self.assertEqual(self.check("src/net/a.cc", "int a;\n// Of one thread.\n"),
                         ["src/net/a.cc:2: a comment begins with 'Of': begin with the subject"])
        for text in ("// What breaks a link: a reset.", "  // Who calls it.", "/* Whose turn. */", "/** What it returns. */"):
            self.assertEqual(len(self.check("include/seto/a.h", text)), 1, text)
        self.assertEqual(len(self.check("dev.sh", "# What the host has\n")), 1)

    def test_later_lines_code_and_documents_may_begin_so(self):
        self.assertEqual(self.check("src/net/a.cc", "// The values\n// Of both ranks.\nint Of;\nint b;  // Of a thread\n"), [])
        self.assertEqual(self.check("src/net/a.cc", "// Offsets.\n\n// Whole pages.\n#if Of\n#endif\n"), [])
        self.assertEqual(self.check("docs/a.md", "# What it is\n"), [])


class Paths(unittest.TestCase):
    def check(self, files, others=()):
        return texts(paths.check(Tree(files, None, frozenset(others))))

    def test_a_path_in_backticks_must_exist(self):
        files = {"README.md": "see `src/base/log.h`, `src/base`, `src/base/log` and `src/gone.cc`\n", "src/base/log.h": ""}
        self.assertEqual(self.check(files), ["README.md:1: names src/gone.cc, which does not exist"])

    def test_a_link_is_relative_to_its_document(self):
        files = {"docs/a.md": "[b](b.md) [c](../c.md#part) [web](https://example.org/x) ![p](p.svg) [d](d.md)\n", "docs/b.md": "", "c.md": ""}
        self.assertEqual(self.check(files, ["docs/p.svg"]), ["docs/a.md:1: names docs/d.md, which does not exist"])

    def test_history_may_name_what_is_gone(self):
        self.assertEqual(self.check({"CHANGELOG.md": "`src/gone.cc`\n", "docs/decisions/0001-a.md": "`src/gone.cc`\n"}), [])


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

    def test_a_header_that_its_source_includes_first_is_left_to_the_build(self):
        header = "#pragma once\nstd::string bad();\n"
        first = '#include "src/base/bad.h"\n\n#include <string>\n'
        later = '#include <string>\n\n#include "src/base/bad.h"\n'
        self.assertEqual(self.check({"src/base/bad.h": header, "src/base/bad.cc": first}), [])
        self.assertEqual(len(self.check({"src/base/bad.h": header, "src/base/bad.cc": later})), 1)
        in_tests = {"tests/support/bad.h": header, "tests/support/bad.cc": first.replace("src/base", "tests/support")}
        self.assertEqual(len(self.check(in_tests)), 1)

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
            self.assertEqual(sum(path.is_file() for path in cache.iterdir()), 2)
            bad = {**good, "src/base/a.h": "#pragma once\ntypedef int Other;\n"}
            self.assertEqual(len(self.check(bad, cache)), 1)


if __name__ == "__main__":
    sys.exit(unittest.main())
