# asyncio: tasks that wait for each other, hand items through queues, and gather results.
import asyncio

import rounds


async def produce(queue, count):
    for i in range(count):
        await queue.put({"number": i, "text": "item %d" % i})
    await queue.put(None)


async def consume(queue):
    total = 0
    while (item := await queue.get()) is not None:
        total += item["number"] + len(item["text"])
    return total


async def tree(depth):
    if depth == 0:
        await asyncio.sleep(0)
        return 1
    return sum(await asyncio.gather(tree(depth - 1), tree(depth - 1)))


async def main(times):
    total = 0
    for _ in range(times):
        queue = asyncio.Queue(16)
        _, consumed = await asyncio.gather(produce(queue, 1500), consume(queue))
        total += consumed + await tree(8)
    return total


rounds.measure(lambda seed: asyncio.run(main(8)))
