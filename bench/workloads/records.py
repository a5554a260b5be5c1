# A Python program as they are written: records as dicts, text, sorting, JSON, classes.
import json
import sys


class Order:
    def __init__(self, number, customer, lines):
        self.number = number
        self.customer = customer
        self.lines = lines

    def total(self):
        return sum(price * count for price, count in self.lines)


def round_of_work(seed):
    orders = []
    for i in range(1500):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        lines = [((seed >> k) % 100 + 0.5, k + 1) for k in range(seed % 7)]
        orders.append(Order(i, "customer %d" % (seed % 1000), lines))
    by_customer = {}
    for order in orders:
        by_customer.setdefault(order.customer, []).append(order)
    rows = [{"customer": name, "orders": [o.number for o in group], "total": sum(o.total() for o in group)}
            for name, group in sorted(by_customer.items())]
    text = json.dumps(rows)
    words = {}
    for word in text.replace(",", " ").split():
        words[word] = words.get(word, 0) + 1
    return len(json.loads(text)) + len(words)


print(sum(round_of_work(i + 1) for i in range(int(sys.argv[1]))))
