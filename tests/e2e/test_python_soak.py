"""A threaded web application under load, for a short time; `./dev soak python_web` does it for ten minutes."""

import sys

import pytest

from harness import ROOT

sys.path.append(str(ROOT / "tests" / "soak"))
import python_web  # noqa: E402


@pytest.mark.parametrize("options", [(), ("--python-objects",)], ids=["plain", "objects"])
def test_the_recorder_does_not_grow(options):
    looks = python_web.soak(12, "/usr/bin/python3", ["--rate", "64K", *options])
    assert looks[-1]["answers"] > looks[0]["answers"] and looks[-1]["samples"] > looks[0]["samples"] > 0
    assert python_web.judge(looks) == []
