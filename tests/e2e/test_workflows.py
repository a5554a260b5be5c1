"""The workflows for GitHub and GitLab, and the forms for issues: these services accept them, and the commands exist.

The schemas come with check-jsonschema from PyPI. Tests that need them are left out where PyPI cannot be reached."""

import re
import subprocess

import harness
import pytest

ROOT = harness.ROOT
CHECKED = [
    ("vendor.github-workflows", ".github/workflows/test.yml"),
    ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/problem.yml"),
    ("vendor.github-issue-forms", ".github/ISSUE_TEMPLATE/wish.yml"),
    ("vendor.github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
    ("vendor.gitlab-ci", ".gitlab-ci.yml"),
]


@pytest.fixture(scope="module")
def checker(tmp_path_factory):
    """check-jsonschema, in an environment of its own that is kept in the build folder."""
    folder = harness.BUILD / "linters"
    program = folder / "bin" / "check-jsonschema"
    if not program.exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", folder], check=True, capture_output=True)
        done = subprocess.run(
            [folder / "bin" / "pip", "install", "-q", "--retries", "1", "check-jsonschema"],
            capture_output=True, text=True,
        )
        if done.returncode:
            pytest.skip(f"check-jsonschema cannot be had from PyPI: {done.stderr.strip()[-200:]}")
    return program


def check(checker, schema, file):
    return subprocess.run([checker, "--builtin-schema", schema, file], capture_output=True, text=True)


@pytest.mark.parametrize("schema,name", CHECKED)
def test_file_is_accepted(checker, schema, name):
    result = check(checker, schema, ROOT / name)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("schema,name", [CHECKED[0], CHECKED[4]])
def test_mistake_is_found(checker, schema, name, tmp_path):
    broken = tmp_path / "broken.yml"
    text = (ROOT / name).read_text()
    broken.write_text(re.sub(r"timeout(-minutes)?: \w+", r"timeout\1: [soon]", text, count=1))
    assert broken.read_text() != text
    assert check(checker, schema, broken).returncode != 0


def test_commands_of_workflows_exist():
    listed = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"^  ([a-z-]+) ", listed, re.M))
    for name in (".github/workflows/test.yml", ".gitlab-ci.yml"):
        called = set(re.findall(r"\./dev ([a-z-]+)", (ROOT / name).read_text()))
        assert called and called <= known, (name, called - known)
