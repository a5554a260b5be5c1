"""Gates of `run`: exit codes, what is said, and the JUnit file, exact and sampled."""

import xml.etree.ElementTree as ElementTree

import pytest

import harness
from harness import MALLOSCOPE, malloscope


@pytest.fixture(scope="module")
def gated(build):
    return build("gated.c")


@pytest.fixture
def run(gated, folder):
    """run("--leaks-fail", leaks=…, …) returns exit status and stderr."""

    def run_gated(*options, leaks=0, allocations=1000, peak=0, status=0, rate="exact"):
        command = [MALLOSCOPE, "run", "-q", "-f", "-o", folder / "g.mscope", *harness.rate_options(rate), *options,
                   "--", gated, leaks, allocations, peak, status]
        result = harness.run(command, expect=None)
        return result.returncode, result.stderr.decode()

    return run_gated


@pytest.mark.parametrize("rate", ["exact", 512])
def test_each_gate(run, rate):
    """Far below and far above the limits: sampling makes no difference."""
    for options, below, above, site in [
        (["--leaks-fail=100K"], {"leaks": 20}, {"leaks": 500}, "lose"),
        (["--peak-limit", "1M"], {"peak": 200000}, {"peak": 3000000}, "hold"),
        (["--max-allocs", "50000"], {"allocations": 10000}, {"allocations": 200000}, "allocate_often"),
    ]:
        gate = options[0].split("=")[0]
        assert run(*options, rate=rate, **below) == (0, "")
        status, said = run(*options, rate=rate, **above)
        assert status == 6
        lines = said.splitlines()
        assert lines[0].startswith(f"malloscope: {gate} failed: ") and "more than the" in lines[0]
        assert (" +- " in lines[0]) == (rate != "exact"), lines[0]
        assert site in lines[1], "the site responsible comes first"
        assert "malloscope leaks " in lines[-1]


@pytest.mark.parametrize("options", [["--peak-limit", "1K"], ["--max-allocs", "10"], ["--leaks-fail"]],
                         ids=lambda options: options[0])
def test_what_was_never_sampled_is_no_zero(gated, folder, options):
    command = [MALLOSCOPE, "run", "-o", folder / "g.mscope", "--rate", "1G", *options, "--", gated, 3, 1000, 0, 0]
    result = harness.run(command)
    (verdict,) = [line for line in result.stderr.decode().splitlines() if f"{options[0]} passed" in line]
    assert "0 +- " in verdict.replace(" B", "") and "a smaller --rate, or --exact, can tell" in verdict


def test_exact_limits_are_exact(run):
    assert run("--leaks-fail=3000", leaks=3)[0] == 0
    assert run("--leaks-fail=2999", leaks=3)[0] == 6
    assert run("--leaks-fail", leaks=1)[0] == 6
    assert run("--leaks-fail", leaks=0)[0] == 0
    assert run("--max-allocs", "100", allocations=98, leaks=2)[0] == 0
    assert run("--max-allocs", "100", allocations=98, leaks=3)[0] == 6
    assert run("--peak-limit", "5000", peak=5000)[0] == 0
    assert run("--peak-limit", "4999", peak=5000)[0] == 6


def test_a_sampled_gate_at_its_limit_rarely_fails(run):
    """In 1 of 40 runs at most: of 80 more than 8 do so once in a thousand. Twice the limit always fails."""
    limits = ["--leaks-fail=1000000", "--max-allocs", "42000", "--peak-limit", "2000000"]
    amounts = {"leaks": 1000, "allocations": 40000, "peak": 1000000}
    failed = {"--leaks-fail": 0, "--max-allocs": 0, "--peak-limit": 0}
    for _ in range(80):
        said = run(*limits, rate="16K", **amounts)[1]
        for gate in failed:
            failed[gate] += f"{gate} failed" in said
    assert max(failed.values()) <= 8, failed
    for _ in range(10):
        status, said = run(*limits, rate="16K", **{name: 2 * amount for name, amount in amounts.items()})
        assert status == 6 and all(f"{gate} failed" in said for gate in failed), said


def test_samples_are_proof_enough(gated, folder):
    """However wide the interval: what was sampled and not freed is more than nothing. A few samples are not enough."""
    options = ["-f", "-o", folder / "g.mscope", "--leaks-fail", "--rate"]
    result = malloscope("run", *options, "20K", "--", gated, 1000, 0, 0, 0, expect=6)
    assert b"lose" in result.stderr
    few = malloscope("run", *options, "2M", "--", gated, 200, 0, 0, 0, expect=0).stderr.decode()
    assert "--leaks-fail passed" in few and "a smaller --rate, or --exact, can tell" in few


def test_the_programs_own_failure_wins(run):
    status, said = run("--leaks-fail", leaks=5, status=3)
    assert status == 3
    assert "--leaks-fail failed" in said and "its own status is passed on" in said


def test_suppressions(run, folder):
    path = folder / "known.supp"
    path.write_text("leak:lose\n")
    assert run("--leaks-fail", "--suppressions", path, leaks=5) == (0, "")
    path.write_text("leak:other\n")
    assert run("--leaks-fail", "--suppressions", path, leaks=5)[0] == 6
    status, said = run("--leaks-fail", "--suppressions", folder / "none.supp", leaks=5)
    assert status == 3 and "none.supp" in said
    assert not (folder / "none.mscope").exists()


def cases_of(path):
    suite = ElementTree.parse(path).getroot().find("testsuite")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert int(suite.get("tests")) == len(cases)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("errors")) == len(suite.findall("testcase/error"))
    return cases


def test_junit(run, folder):
    path = folder / "gates.xml"
    assert run("--leaks-fail", "--peak-limit", "1G", "--junit", path, leaks=5)[0] == 6
    cases = cases_of(path)
    assert list(cases) == ["exit status", "leaks-fail", "peak-limit"]
    failure = cases["leaks-fail"].find("failure")
    assert "likely leaks: 4.88 KiB" in failure.get("message")
    assert "lose" in failure.text and "nothing from here was ever freed" in failure.text
    assert cases["peak-limit"].find("failure") is None and cases["exit status"].find("failure") is None
    assert run("--leaks-fail", "--junit", path, status=4)[0] == 4
    cases = cases_of(path)
    assert cases["exit status"].find("failure").get("message") == "exit status 4"
    assert cases["leaks-fail"].find("failure") is None


def test_a_gate_that_cannot_be_judged_does_not_pass(build, folder):
    source = folder / "removes.c"
    source.write_text("#include <stdlib.h>\n#include <unistd.h>\n"
                      "int main(int n, char **a) { return malloc(n) ? unlink(a[1]) : 1; }\n")
    path, xml = folder / "g.mscope", folder / "gates.xml"
    result = malloscope("run", "-o", path, "--leaks-fail", "--junit", xml, "--", build(str(source)), path, expect=1)
    assert b"--leaks-fail could not be judged: the program was not recorded" in result.stderr
    assert cases_of(xml)["leaks-fail"].find("error") is not None


def test_wrong_command_lines(run, folder):
    assert run("--leaks-fail=some")[0] == 2
    assert run("--peak-limit", "big")[0] == 2
    status, said = run("--junit", folder / "x.xml")
    assert status == 2 and "--leaks-fail, --peak-limit or --max-allocs" in said
    assert run("--leaks-fail", "--junit", folder / "none" / "x.xml")[0] == 3


def test_gates_that_pass_are_told(gated, folder):
    said = malloscope("run", "-e", "-o", folder / "g.mscope", "--leaks-fail", "--", gated, 0, 10, 0, 0).stderr.decode()
    assert "--leaks-fail passed: likely leaks: 0 B, no more than the 0 B allowed" in said
