# Dictionaries that are filled, grouped, joined and emptied: keys of text, numbers and tuples.
from collections import Counter, defaultdict

import rounds


def round_of_work(seed):
    people = {}
    for i in range(16000):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        people["person %d" % i] = (seed % 90, seed >> 8 & 1023)
    by_age = defaultdict(list)
    for name, (age, city) in people.items():
        by_age[age].append((name, city))
    cities = Counter(city for _, city in people.values())
    grid = {(city, age): cities[city] for age, group in by_age.items() for _, city in group}
    for name in [name for name, (age, _) in people.items() if age < 20]:
        del people[name]
    merged = {**people, **{"city %d" % city: count for city, count in cities.items()}}
    return len(merged) + sum(grid.values()) + max(map(len, by_age.values()))


rounds.measure(round_of_work)
