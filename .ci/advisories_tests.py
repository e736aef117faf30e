"""Tests of advisories.py: `python3 .ci/advisories.py --test`."""

import contextlib
import datetime
import io
import unittest

from advisories import Version, affects, core, hits, is_stale, matches, read_ignored, summary


class Order(unittest.TestCase):
    def test_versions_have_the_order_of_semantic_versioning(self):
        ordered = "0.0.1 0.1.0-alpha 0.1.0-alpha.1 0.1.0-alpha.beta 0.1.0-beta.2 0.1.0-beta.11 0.1.0-rc.1 0.1.0 0.1.1 0.10.0 1.0.0"
        versions = [Version(text) for text in ordered.split()]
        for earlier, later in zip(versions, versions[1:]):
            self.assertTrue(earlier < later and not later < earlier)
        self.assertFalse(Version("1.0.0+a") < Version("1.0.0+b"))
        self.assertEqual(Version("1.2.3+build.5").core, (1, 2, 3))

    def test_what_is_no_version_is_said_so(self):
        for bad in ["", "1.2.3.4", "x", "1.2-"]:
            with self.assertRaises(ValueError):
                Version(bad)


class Ranges(unittest.TestCase):
    def check(self, requirement, inside, outside):
        for text in inside.split():
            self.assertTrue(matches(requirement, Version(text)), f"{text} is in {requirement}")
        for text in outside.split():
            self.assertFalse(matches(requirement, Version(text)), f"{text} is not in {requirement}")

    def test_comparators(self):
        self.check(">= 1.2.3", "1.2.3 1.2.4 2.0.0 2.0.0-rc.1", "1.2.2 1.2.3-rc.1 0.9.0")
        self.check("> 1.2.3", "1.2.4 2.0.0 1.3.0-rc.1", "1.2.3 1.2.3-rc.1 1.0.0")
        self.check("< 1.2.3", "1.2.2 0.0.1 1.2.3-rc.1", "1.2.3 1.2.4")
        self.check("<= 1.2.3", "1.2.3 1.2.3-rc.1", "1.2.4")
        self.check("= 1.2.3", "1.2.3", "1.2.4 1.2.3-rc.1")
        self.check("=1.2.3-rc.1", "1.2.3-rc.1", "1.2.3 1.2.3-rc.2")

    def test_with_fewer_numbers(self):
        self.check("> 1.2", "1.3.0 2.0.0", "1.2.0 1.2.9")
        self.check("<= 1.2", "1.2.9 1.0.0", "1.3.0")
        self.check("= 0.20", "0.20.0 0.20.9", "0.21.0 0.19.9")
        self.check(">= 1", "1.0.0 2.1.0", "0.9.9")

    def test_caret_and_tilde(self):
        self.check("^1.2.3", "1.2.3 1.9.0", "2.0.0 1.2.2 2.0.0-rc.1")
        self.check("^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2 0.3.0-alpha")
        self.check("^0.0.3", "0.0.3", "0.0.4 0.0.2")
        self.check("^0.0", "0.0.0 0.0.9", "0.1.0")
        self.check("^0", "0.0.1 0.9.9", "1.0.0")
        self.check("1.2", "1.2.0 1.9.9", "1.1.9 2.0.0")
        self.check("~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2")
        self.check("~1.2", "1.2.0 1.2.9", "1.3.0")
        self.check("~1", "1.0.0 1.9.9", "2.0.0")

    def test_commas_and_stars(self):
        self.check(">= 0.22.4, < 0.23.0", "0.22.4 0.22.9", "0.22.3 0.23.0")
        self.check("*", "0.0.1 9.9.9 1.0.0-a", "")
        self.check("1.2.*", "1.2.0 1.2.9", "1.3.0 1.1.9")

    def test_the_next_bound_has_three_numbers(self):
        self.assertEqual(core((0, 2)).core, (0, 2, 0))


LOCK = """
version = 4
[[package]]
name = "rustls"
version = "0.23.4"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "ours"
version = "0.0.1"
"""

ADVISORY = '''```toml
[advisory]
id = "RUSTSEC-2024-0336"
package = "rustls"
date = "2024-04-19"
%s
[versions]
patched = [">= 0.23.5", ">= 0.22.4, < 0.23.0"]
unaffected = ["< 0.20"]
```
# It loops
text
'''


class Hits(unittest.TestCase):
    def test_a_version_that_is_neither_patched_nor_unaffected_is_a_hit(self):
        advisory = summary(ADVISORY % "")
        self.assertEqual(advisory["title"], "It loops")
        for version in ["0.23.4", "0.22.3", "0.20.0", "0.23.5-rc.1"]:
            self.assertTrue(affects(advisory, version), version)
        for version in ["0.23.5", "0.22.4", "0.24.0", "0.19.9"]:
            self.assertFalse(affects(advisory, version), version)
        found = list(hits(LOCK, [advisory]))
        self.assertEqual([version for version, _ in found], ["0.23.4"])
        self.assertEqual(list(hits(LOCK.replace("0.23.4", "0.23.5"), [advisory])), [])
        ours = advisory | {"package": "ours"}
        self.assertEqual(list(hits(LOCK, [ours])), [], "what is not from a registry is ours")

    def test_withdrawn_ones_are_left_out_and_licences_are_kept(self):
        self.assertIsNone(summary(ADVISORY % 'withdrawn = "2024-05-01"'))
        licensed = summary(ADVISORY % 'license = "CC-BY-4.0"\nurl = "https://x"\ninformational = "unsound"')
        self.assertEqual((licensed["licence"], licensed["url"]), ("CC-BY-4.0", "https://x"))
        self.assertEqual(licensed["informational"], "unsound")

    def test_nothing_is_accepted_without_a_reason_and_an_end(self):
        entry = '[[ignored]]\nid = "R"\nreason = "%s"\nuntil = %s\n'
        self.assertIn("R", read_ignored(entry % ("nobody calls it from outside", "2027-01-31")))
        for reason, until in [("", "2027-01-31"), ("fine", "2027-01-31"), ("nobody calls it from outside", '"never"')]:
            with self.assertRaises(ValueError):
                read_ignored(entry % (reason, until))
        with self.assertRaises(ValueError):
            read_ignored('[[ignored]]\nid = "R"\n')

    def test_an_old_snapshot_fails_unless_that_is_accepted_for_now(self):
        today = datetime.date(2026, 11, 28)
        accepted = lambda until: {"id": "stale", "reason": "no network to be had here", "until": until}
        with contextlib.redirect_stdout(io.StringIO()) as told:
            self.assertFalse(is_stale(60, None, today))
            self.assertEqual(told.getvalue(), "")
            self.assertTrue(is_stale(61, None, today))
            self.assertTrue(is_stale(61, accepted(today), today))
            self.assertFalse(is_stale(61, accepted(datetime.date(2026, 11, 29)), today))
            self.assertIn("no network to be had here", told.getvalue())
        entry = '[stale]\nreason = "no network to be had here"\nuntil = 2027-01-31\n'
        self.assertEqual(read_ignored(entry)["stale"]["until"], datetime.date(2027, 1, 31))


def run() -> int:
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        suite = unittest.defaultTestLoader.loadTestsFromModule(__import__(__name__))
        result = unittest.TextTestRunner(stream=told, verbosity=1).run(suite)
    if not result.wasSuccessful():
        print(told.getvalue())
    print(f"{result.testsRun} tests of the advisories' matcher, {len(result.failures) + len(result.errors)} failed")
    return int(not result.wasSuccessful())
