"""The script dev, where it does more than call a tool."""

import os
import shutil
import subprocess

import harness


def test_format_sees_new_files_but_neither_removed_nor_ignored_ones(tmp_path):
    """In a repository of its own, with programs in place of clang-format and dpkg-query that show what is asked."""
    repository, programs = tmp_path / "repository", tmp_path / "programs"
    repository.mkdir()
    programs.mkdir()
    shutil.copy(harness.ROOT / "dev", repository)
    for name, text in (("clang-format", f'printf "%s\\n" "$@" >>{tmp_path}/asked'), ("dpkg-query", "echo installed")):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (repository / ".gitignore").write_text("/build/\n")
    (repository / "build").mkdir()
    for name in ("tracked.c", "removed.c", "notes.txt", "build/ignored.c"):
        (repository / name).write_text("int a;\n")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": "/dev/null"}

    def run(*command):
        subprocess.run(command, cwd=repository, env=environment, check=True, stdout=subprocess.PIPE)

    run("git", "init", "-q")
    run("git", "add", ".")
    (repository / "removed.c").unlink()
    (repository / "new file.h").write_text("int b;\n")
    run("./dev", "format")
    assert sorted((tmp_path / "asked").read_text().splitlines()) == ["-i", "new file.h", "tracked.c"]
