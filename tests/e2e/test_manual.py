"""The manual: a page for every command, which says what the command's table says, and no reader warns."""

import json
import re
import shutil

import pytest

import harness
from harness import malloscope

TABLE = json.loads(malloscope("help", "--json").stdout)["commands"]
PAGES = ["malloscope", *(f"malloscope-{command['name']}" for command in TABLE)]
COMMANDS = [command["name"] for command in TABLE]


def page(name):
    return harness.BUILD / "docs" / f"{name}.1"


def words(text):
    return " ".join(text.split())


def shown(name):
    """The page as a reader sees it, without hyphenation, with single blanks."""
    text = harness.run(["groff", "-man", "-Tascii", "-P-cbou", "-rHY=0", "-rLL=2000n", page(name)]).stdout.decode()
    return words(text)


@pytest.fixture(params=TABLE, ids=COMMANDS)
def command(request):
    return request.param


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_free_of_warnings(name):
    readers = {"mandoc": ["-Tlint", "-Wwarning"], "groff": ["-man", "-ww", "-z", "-Tutf8"]}
    for reader, options in readers.items():
        if not shutil.which(reader):
            pytest.skip(f"no {reader} here (Debian: apt install mandoc groff-base)")
        answer = harness.run([reader, *options, page(name)], expect=None)
        assert (answer.stdout + answer.stderr).decode() == ""


def test_options_are_in_the_page(command):
    text = shown(f"malloscope-{command['name']}")
    for option in command["options"]:
        form = f"-{option['letter']}, --{option['name']}" if option["letter"] else f"--{option['name']}"
        if option["argument"]:
            form += option["argument"] if option["argument"].startswith("[") else f" {option['argument']}"
        saying = re.sub(r"'(malloscope \w+)'", r"\1", words(option["help"]).rstrip(":"))
        assert f" {form} {saying}".lower() in text.lower()
        for choice in option.get("choices", []):
            assert re.search(rf"\b{re.escape(choice)}\b", text.split(form, 1)[1]), choice
        if option["environment"]:
            assert f"{option['environment']} Used where --{option['name']} is not given." in text


def test_help_says_what_the_page_says(command):
    text = words(malloscope(command["name"], "--help").stdout.decode())
    assert text == words(malloscope("help", command["name"]).stdout.decode())
    for option in command["options"]:
        assert words(option["help"]) in text
    page_text = shown(f"malloscope-{command['name']}")
    for example in command["examples"].splitlines():
        assert words(example) in page_text


def test_the_first_page_leads_to_all_others():
    text = shown("malloscope")
    for command in TABLE:
        assert f"malloscope-{command['name']}(1) {words(command['summary'])}" in text
        for option in command["options"]:
            assert not option["environment"] or option["environment"] in text


@pytest.mark.parametrize(
    "term", ["interposition", "preload", "retained size", "sampling interval", "symbolization", "unwinder"]
)
def test_the_terms_of_the_trade_are_explained(term):
    terms = shown("malloscope").split(" TERMS ")[1].split(" NAMES Symbolization")[0]
    assert re.search(rf"[.] (\w+, )?{term}(, \w+)? [A-Z]", terms)


def test_options_that_name_files_are_known_as_such(command):
    """Shells complete them by their kind."""
    for option in command["options"]:
        if option["argument"] == "FILE":
            assert option["kind"] == "file"
        if option["argument"] == "DIR":
            assert option["kind"] == "folder"


def test_prose_about_an_option_that_is_gone_is_refused(folder):
    source = harness.ROOT / "docs" / "man"
    prose = folder / "malloscope-stats.man"
    prose.write_text("@option colour\nIt is red.\n")
    command = ["python3", source / "page.py", harness.MALLOSCOPE, prose, source / "shared.man", folder / "out.1"]
    assert "'stats' has no option --colour" in harness.run(command, expect=1).stderr.decode()
    prose.write_text("@option json\nIt is one line.\n")
    harness.run(command)
    assert "It is one line." in (folder / "out.1").read_text()


def test_pages_and_scripts_are_installed(folder):
    harness.run(["meson", "install", "--quiet", "--no-rebuild", "-C", harness.BUILD, "--destdir", folder])
    (share,) = folder.glob("**/share")
    for name in PAGES:
        assert (share / "man" / "man1" / f"{name}.1").read_bytes() == page(name).read_bytes()
    places = {"bash": "bash-completion/completions/malloscope", "zsh": "zsh/site-functions/_malloscope",
              "fish": "fish/vendor_completions.d/malloscope.fish"}
    for shell, place in places.items():
        assert (share / place).read_bytes() == malloscope("completions", shell).stdout
