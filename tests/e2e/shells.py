"""Real shells that are asked what they would complete: each is a function of a command line and a folder."""

import os
import pty
import re
import select
import shlex
import subprocess
import time

import harness

PATIENCE = 60


class Bash:
    """The function that bash calls, with the words as bash would split them."""

    def __init__(self, folder, script):
        self.path = folder / "malloscope.bash"
        self.path.write_bytes(script)

    def complete(self, line, folder):
        words = re.findall(r"=|[^\s=]+", line) + ([""] if line[-1].isspace() else [])
        program = (
            f"source {self.path}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}\n"
            "_malloscope; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        answer = harness.run(["bash", "--norc", "-c", program], cwd=folder, env=with_tool())
        assert answer.stderr == b"", answer.stderr
        return set(answer.stdout.decode().splitlines()) - {""}

    def close(self):
        pass


class Fish:
    def __init__(self, folder, script):
        self.home = folder / "fish"
        place = self.home / "fish" / "completions"
        place.mkdir(parents=True)
        (place / "malloscope.fish").write_bytes(script)

    def complete(self, line, folder):
        env = with_tool({"XDG_CONFIG_HOME": str(self.home), "XDG_DATA_HOME": str(self.home)})
        answer = harness.run(["fish", "-c", f"complete -C {shlex.quote(line)}"], cwd=folder, env=env)
        assert answer.stderr == b"", answer.stderr
        # Of '--sort=' fish offers '--sort=live', which is the same word.
        found = {each.split("\t")[0] for each in answer.stdout.decode().splitlines()}
        return {re.sub(r"^--[\w-]+=", "", each) for each in found} if "=" in line else found

    def close(self):
        pass


# Prints each word that zsh is about to list, and a last line at the end.
ZSH_SETUP = """
PROMPT='> '; unsetopt beep; fpath=({place} $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {{
    local -a found
    if (( ${{@[(I)-[a-zA-Z12]#[OAD]]}} )); then builtin compadd "$@"; return; fi
    builtin compadd -A found "$@"
    (( $#found )) && print -rl -- $found >> {result}
    builtin compadd "$@"
}}
tell_end() {{ print -r -- 'the end' >> {result}; }}
next() {{ comppostfuncs=(tell_end); }}
precmd_functions=(next)
print ready > {result}
"""


class Zsh:
    """An interactive zsh, in which Tab is pressed."""

    def __init__(self, folder, script):
        self.result = folder / "zsh-result"
        place = folder / "zsh"
        place.mkdir()
        (place / "_malloscope").write_bytes(script)
        setup = folder / "setup.zsh"
        setup.write_text(ZSH_SETUP.format(place=place, result=self.result))
        self.terminal, inner = pty.openpty()
        env = harness.clean_environment(with_tool({"TERM": "dumb", "ZDOTDIR": str(folder)}))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "zsh", "-f", "-i"], stdin=inner, stdout=inner, stderr=inner, env=env, cwd=folder
        )
        os.close(inner)
        self.type(f"source {setup}\n")
        self.wait("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, last):
        """What was found, as soon as its last line is there. What the terminal shows is read, and thrown away."""
        shown = b""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.02)[0]:
                shown += os.read(self.terminal, 65536)
            lines = self.result.read_text().splitlines() if self.result.exists() else []
            if lines and lines[-1] == last:
                return lines[:-1]
        raise AssertionError(f"zsh does not answer: {shown[-2000:]}")

    def complete(self, line, folder):
        self.result.unlink()
        self.type(f"\x15cd {shlex.quote(str(folder))}; next; print ready > {self.result}\n")
        self.wait("ready")
        self.result.unlink()
        self.type(f"{line}\t")
        found = self.wait("the end")
        self.type("\x15")
        return set(found)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()  # an interactive shell need not end when it is asked to
            self.process.wait()
        os.close(self.terminal)


def with_tool(extra=None):
    return {"PATH": f"{harness.BUILD}:{os.environ['PATH']}", **(extra or {})}


SHELLS = {"bash": Bash, "zsh": Zsh, "fish": Fish}
