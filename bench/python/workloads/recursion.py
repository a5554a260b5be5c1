# Recursion: a search that goes hundreds of calls deep, and allocates at each of them.
import rounds


def descend(depth, path):
    if depth == 0:
        return len(path)
    return descend(depth - 1, path + [depth] if depth % 8 == 0 else list(path[-4:])) + 1


def round_of_work(seed):
    return sum(descend(500 + (seed + i) % 100, []) for i in range(200))


rounds.measure(round_of_work)
