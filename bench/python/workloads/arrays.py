# numpy: many small arrays from Python, and a few large ones.
import numpy
import rounds


def small(seed):
    total = 0.0
    point = numpy.array([seed, 1.0, 2.0])
    for i in range(8000):
        turned = point[::-1] * 0.5 + i
        total += float(turned.sum()) + float(numpy.dot(turned, point))
    return total


def large(seed):
    values = (numpy.arange(200000, dtype=numpy.float64) * (seed + 1)) % 1013
    above = values[values > 500]
    table = values.reshape(400, 500)
    return above.size + float(table.mean(axis=0).max()) + float(numpy.sort(values[::7])[1000])


rounds.measure(lambda seed: small(seed) + large(seed))
