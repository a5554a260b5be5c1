"""What documents and comments say of the tree is true: files exist, links lead somewhere, figures are measured."""

import re
import subprocess

import harness
import pytest

ROOT = harness.ROOT
LINE_MOST = 120
# Their lines are as long as they are: the licence is quoted, pictures, corpora and figures were written by programs,
# and the guide shows what commands print on wide terminals.
NOT_OURS = re.compile(
    r"^(LICENSE|docs/bench/|docs/guide\.md$|docs/guide/.*\.(png|svg)|docs/pictures/|tests/fuzz/corpus/"
    r"|tests/runner/times\.json|.*\.(png|svg)$)"
)
FOLDERS = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
PATH = re.compile(
    r"(?<![\w/.<-])((?:src|tests|docs|bench|web|python|include|examples|cross|" + "|".join(sorted(FOLDERS)) +
    r")/(?:[\w-]+/)*[\w-]+\.(?:c|h|S|py|md|js|pml|man|sh|txt|html|css|cpp|rs|ini|json))\b"
)
MADE = re.compile(r"^(src/.*\.skel\.h|attach/.*\.skel\.h|.*\.pb-c\.[ch]|build/)")  # by the build
# Files that name trees of others, or faults that they plant.
OTHER_TREES = ("tests/foreign/", "tests/analysis/", "tests/e2e/test_documents.py")


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def text_of(name):
    try:
        return (ROOT / name).read_text()
    except UnicodeDecodeError:
        return None


def ours():
    return [name for name in tracked() if not NOT_OURS.match(name)]


DOCUMENTS = [name for name in tracked() if name.endswith(".md")]


def test_lines_have_at_most_120_characters():
    """In every text file that people write: documents, sources, the page, tests, benchmarks, scripts, build files."""
    long = [
        f"{name}:{number}: {len(line)}"
        for name in ours()
        for number, line in enumerate((text_of(name) or "").split("\n"), 1)
        if len(line) > LINE_MOST
    ]
    assert not long, "\n".join(long)


def test_files_that_are_named_exist():
    missing = []
    for name in ours():
        if not name.endswith((".md", ".c", ".h", ".S", ".py", ".js", ".pml")) or name.startswith(OTHER_TREES):
            continue
        beside = (ROOT / name).parent
        for number, line in enumerate((text_of(name) or "").split("\n"), 1):
            for path in PATH.findall(line):
                places = [ROOT / path, ROOT / "src" / path, beside / path, beside.parent / path, ROOT / "tests" / path]
                is_example = re.search(r"NAME|FOLDER", path)
                if not MADE.match(path) and not is_example and not any(place.exists() for place in places):
                    missing.append(f"{name}:{number}: {path}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    text = re.sub(r"```.*?```", "", text_of(name), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        assert place.exists(), f"{name}: {target}"
        if heading:
            titles = re.findall(r"^#+ (.*)$", place.read_text(), re.M)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors, f"{name}: {target}"


def test_each_folder_of_the_sources_has_a_door():
    folders = {path.parent for ending in ("*.c", "*.h") for path in (ROOT / "src").rglob(ending)}
    folders |= {folder.parent for folder in folders} - {ROOT}
    assert not [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "README.md").exists()]


def test_figures_of_performance_are_those_of_the_bench(tmp_path):
    result = subprocess.run([ROOT / "bench" / "tables.py", "--check"])
    assert result.returncode == 0, "docs/performance.md is not what bench/tables.py makes of docs/bench/results.json"
