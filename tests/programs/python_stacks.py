"""Allocates blocks of sizes that occur once, from as many kinds of stack as there are, and prints the Python stack of
each as the interpreter tells it: {size: [[function, file, line], …]}, innermost first."""

import asyncio
import functools
import json
import sys
import threading

kept = [None] * 5000  # nothing else is allocated on the line that fills it
stacks = {}
lock = threading.Lock()
next_size = 200000


def take():
    """The one place that allocates."""
    global next_size
    with lock:
        size = next_size
        next_size += 1
        found = []
        frame = sys._getframe()
        while frame:
            code = frame.f_code
            name = getattr(code, "co_qualname", code.co_name)
            found.append([name, code.co_filename, frame.f_lineno])
            frame = frame.f_back
        found[0][2] = sys._getframe().f_lineno + 2  # that of the allocation
        stacks[size] = found
        kept[size - 200000] = bytearray(size)


class Account:
    limit = property(lambda self: take())

    def __init__(self, depth):
        if depth:
            Account(depth - 1)
        else:
            take()

    def __eq__(self, other):
        take()
        return False

    def __hash__(self):
        take()
        return 1

    def __getattr__(self, name):
        take()
        return None

    @staticmethod
    def settle():
        take()

    @classmethod
    def audit(cls, *arguments, **options):
        return cls.settle()


def numbers(count):
    for i in range(count):
        take()
        yield i


def delegating(count):
    yield from numbers(count)


async def coroutine(depth):
    if depth:
        await coroutine(depth - 1)
        await asyncio.sleep(0)
    take()


async def gathered():
    await asyncio.gather(*(coroutine(i) for i in range(4)))


def recurse(depth):
    if depth == 0:
        return take()
    return recurse(depth - 1)


def left(depth, turn):
    """All frames but one are where they were the time before, those of the innermost calls too."""
    if depth == 0:
        return take()
    return (right if depth == turn else left)(depth - 1, turn)


def right(depth, turn):
    if depth == 0:
        return take()
    return (right if depth == turn else left)(depth - 1, turn)


def resume(depth, generator):
    """Its frame stays where it is, below other callers."""
    return resume(depth - 1, generator) if depth else next(generator)


def in_deep_stacks():
    for depth in (20, 50):
        for turn in range(depth, 0, -3):
            left(depth, turn)
    generator = numbers(5)
    for depth in (0, 30, 1, 40, 30):
        resume(depth, generator)


def in_native_callbacks():
    sorted([3, 1, 2], key=lambda x: take() or x)
    list(map(lambda x: take(), range(3)))
    functools.reduce(lambda a, b: take(), range(4))
    functools.partial(Account.audit, 1, a=2)()
    max(range(3), key=lambda x: take() or x)
    json.loads("[1, 2, 3]", parse_int=lambda text: take())
    {Account(0): 1, Account(0): 2}
    Account(0).limit
    Account(0).missing
    exec("take()", globals())
    eval("[take() for _ in range(2)]", globals())
    (lambda: take())()


def everything():
    take()
    for depth in (0, 1, 5, 20, 60):
        recurse(depth)
        Account(depth)
    list(numbers(5))
    sum(delegating(4))
    [take() for _ in range(3)]
    {take() for _ in range(3)}
    list(take() for _ in range(3))
    in_native_callbacks()
    in_deep_stacks()
    asyncio.run(gathered())
    try:
        raise ValueError
    except ValueError:
        take()


def main():
    for _ in range(5):
        everything()
    threads = [threading.Thread(target=everything) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump(stacks, sys.stdout)


main()
