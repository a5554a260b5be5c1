"""Makes the recorder ask the system for everything that it needs in a Python program: code that is new, stacks that are
deep, an extension module that is loaded, a thread, a child. Prints what it did: the same without a recorder."""

import os
import sys
import threading

kept = []


def keep(depth, size):
    if depth:
        keep(depth - 1, size)
    else:
        kept.append(bytearray(size))


for number in range(1500):
    keep(number % 30, 600 + number)
for number in range(300):  # names of functions and files that have not been met before
    source = f"def made_{number}():\n    kept.append(bytearray(1000 + {number}))\nmade_{number}()\n"
    exec(compile(source, f"/nowhere/made_{number}.py", "exec"))

import _decimal  # noqa: E402, a library of its own

kept.append(str(_decimal.Decimal(2).sqrt()))
thread = threading.Thread(target=keep, args=(10, 70000))
thread.start()
thread.join()

child = os.fork()
if child == 0:
    keep(5, 80000)
    os._exit(4)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(len(kept), sum(map(len, kept)), kept[-2], status)
sys.exit(3)
