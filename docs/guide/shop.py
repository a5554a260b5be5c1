"""Customers of prices.py: shop.py COUNT asks for so many offers."""
import itertools
import os
import sys
import time
from pathlib import Path
from urllib.request import urlopen

while not Path("prices.port").exists():
    time.sleep(0.05)
port = Path("prices.port").read_text()
for number in itertools.islice(itertools.count(), int(sys.argv[1])):
    urlopen(f"http://127.0.0.1:{port}/item-{number % 20_000}/customer-{os.getpid()}-{number}").read()
print(f"{sys.argv[1]} offers")
