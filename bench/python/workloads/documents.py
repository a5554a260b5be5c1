# Documents as a web service has them: made, written as JSON, read again, and looked through.
import json

import rounds


def document(seed):
    return {
        "id": "document-%08d" % seed,
        "tags": ["tag%d" % (seed * k % 37) for k in range(1, 6)],
        "owner": {"name": "user %d" % (seed % 500), "active": seed % 3 == 0, "score": seed % 1000 / 7},
        "history": [{"at": 1700000000 + seed * k, "action": ("view", "edit", "move")[k % 3], "note": None}
                    for k in range(8)],
    }


def edits(documents):
    return sum(step["action"] == "edit" for read in documents for step in read["history"])


def round_of_work(seed):
    texts = [json.dumps(document(seed * 1000 + i)) for i in range(1000)]
    read = [json.loads(text) for text in texts]
    indented = json.dumps(read[:100], indent=2, sort_keys=True)
    return edits(read) + len(indented) + sum(map(len, texts))


rounds.measure(round_of_work)
