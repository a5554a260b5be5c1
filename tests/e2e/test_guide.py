"""The guide: its commands are those that the tool has, and each investigation, run again, finds what the guide says."""

import functools
import json
import re
import shutil

import pytest

import attaching
import harness
from harness import ROOT, malloscope

GUIDE = ROOT / "docs" / "guide.md"
# Of each investigation: what its commands need here, and what they must print anew. The patterns are lines of output.
FINDINGS = {
    "leak": (["gcc"], [
        r"LIKELY LEAKS: .*MiB in .*", r" +describe_browser  sessions\.c:\d+", r"malloscope: --leaks-fail failed: .*",
        r"exit status 6", r"malloscope: --leaks-fail passed: .*", r"passed"]),
    "peak": (["g++"], [
        r" *\d.*  split  sales\.cpp:\d+", r"-.*\*.*  split  sales", r"-.*\*.*  read_rows  sales", r"passed"]),
    "churn": (["g++"], [
        r" +0 B .* (100|>99)%  quote.*access_log\.cpp:\d+", r" *-\d.*\*.*  line_of  access_log\.cpp:\d+", r"passed"]),
    "python": (["/usr/bin/python3"], [
        r"\+\d.*\*.*  JSONEncoder\.\w+  encoder\.py:\d+", r"LIKELY LEAKS: .*", r" +offer  prices\.py:\d+"]),
    "attach": (["rustc"], [
        r" *\d.*MiB .*  keys::Store::note  keys\.rs:\d+", r"LIKELY LEAKS: .*MiB in .*",
        r" +keys::Store::note  keys\.rs:\d+"]),
}


@functools.cache
def blocks(path):
    """The blocks of commands of a guide, by investigation: commands, and all lines that they printed."""
    found = {}
    for part in re.split(r"<!-- investigation: (?=\w+ -->)", path.read_text())[1:]:
        name, text = part.split(" -->", 1)
        lines = "\n".join(re.findall(r"```console\n(.*?)\n```", text, re.DOTALL)).splitlines()
        found[name] = (
            [line[2:] for line in lines if line.startswith("$ ")],
            [line for line in lines if not line.startswith("$ ")],
        )
    return found


def test_every_investigation_is_known():
    assert list(blocks(GUIDE)) == list(FINDINGS)


def test_commands_are_those_of_the_tool():
    table = {command["name"]: command for command in json.loads(malloscope("help", "--json").stdout)["commands"]}
    seen = set()
    for commands, _ in blocks(GUIDE).values():
        for name, rest in re.findall(r"malloscope (\w+)([^|&;\n]*)", "\n".join(commands)):
            options = {f"--{option['name']}" for option in table[name]["options"]}
            options |= {f"-{option['letter']}" for option in table[name]["options"] if option["letter"]}
            given = re.findall(r"(?<= )--?[a-zA-Z][\w-]*", rest.split(" -- ")[0])
            assert set(given) <= options, (name, rest)
            seen.add(name)
    assert seen >= {"run", "report", "leaks", "timeline", "flame", "archive", "diff", "dump", "attach"}


def test_programs_and_pictures_are_there():
    text = GUIDE.read_text()
    links = re.findall(r"\]\((guide/[\w.]+)\)", text)
    assert len(links) > 10
    for link in links:
        assert (GUIDE.parent / link).exists(), link
    for picture in (GUIDE.parent / "guide").glob("*.png"):
        assert picture.stat().st_size < 150_000
    assert len(re.findall(r"<!-- picture: (?:page|screen) .* -->\n!\[", text)) == len(re.findall(r"!\[", text))


@pytest.mark.probes
@pytest.mark.parametrize("name", FINDINGS)
def test_an_investigation_finds_it_again(name, folder):
    needed, findings = FINDINGS[name]
    for program in needed:
        if not shutil.which(program):
            pytest.skip(f"no {program} here")
    if name == "attach" and attaching.why_not():
        pytest.skip(attaching.why_not())
    for pattern in findings:
        assert any(re.fullmatch(pattern, line) for line in blocks(GUIDE)[name][1]), f"not in the guide: {pattern}"
    harness.run([GUIDE.parent / "guide" / "make", "--text", "--into", folder, name],
                env={"MALLOSCOPE_BUILD": str(harness.BUILD)})
    printed = blocks(folder / "guide.md")[name][1]
    for pattern in findings:
        assert any(re.fullmatch(pattern, line) for line in printed), f"{pattern} is not in\n" + "\n".join(printed)
