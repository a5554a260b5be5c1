"""Runs inside gdb, for the scripts that compare stacks with gdb's: a stack as words, as malloscope has them."""

import gdb


def prepare():
    for setting in ("confirm off", "debuginfod enabled off", "print thread-events off", "backtrace limit unlimited",
                    "backtrace past-main on", "backtrace past-entry on"):
        gdb.execute("set " + setting)
    gdb.execute("handle all nostop noprint pass", to_string=True)


def mappings():
    """Ranges of addresses with their rights."""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as maps:
        lines = [line.split(maxsplit=2)[:2] for line in maps]
    return [(*(int(bound, 16) for bound in place.split("-")), rights) for place, rights in lines]


def symbol_at(address):
    """The function's name alone, from "name + offset in section .text of file"."""
    return gdb.execute(f"info symbol {address}", to_string=True).split()[0]


def without_guesses(words):
    """Where no unwind information says that a stack ends, gdb guesses on, through whatever lies above on the stack.
    What is not even code was a guess."""
    ranges = [(start, end) for start, end, rights in mappings() if "x" in rights]
    for i, word in enumerate(words):
        if not any(start <= word < end for start, end in ranges):
            last = symbol_at(words[i - 1])
            return words[: i - 1] + [words[i - 1] + (last == "__start_context")], last
    return words, None


def words_from(frame):
    """Return addresses, the address after that of an interrupted instruction or of one that begins a function to which
    the stack was made to return; and the function at whose end gdb went on although the stack ends there, None if it
    did not."""
    words, interrupted, reason = [], False, None
    while frame is not None:
        # Inlined and tail calls have no frames of their own: gdb adds them from the debug information.
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            is_trampoline = frame.type() == gdb.SIGTRAMP_FRAME
            words.append(frame.pc() + (interrupted or is_trampoline))
            interrupted = is_trampoline
        reason = frame.unwind_stop_reason()
        frame = frame.older()
    past = None
    if reason != gdb.FRAME_UNWIND_OUTERMOST:
        words, past = without_guesses(words)
    return tuple(words), past
