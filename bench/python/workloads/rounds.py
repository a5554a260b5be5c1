"""Runs a workload's rounds, and tells their result and the processor time of one: the median, so that neither the
interpreter's start, nor a profiler's, nor an interruption counts."""
import statistics
import sys
import time


def measure(work):
    result, times = 0, []
    for number in range(int(sys.argv[1])):
        begin = time.process_time_ns()
        result += work(number + 1)
        times.append(time.process_time_ns() - begin)
    print("result", round(result, 3))
    print("ns", int(statistics.median(times)) if times else 0)
