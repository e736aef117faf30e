"""Searches a catalogue that fill.py has filled: ask.py ADDRESS SECONDS. A line for each kind of question."""

import http.client
import json
import random
import sys
import time
import urllib.parse

from words import vocabulary


def questions(words: list) -> dict:
    rng = random.Random(5)
    common, middle = words[:20], words[200:2_000]

    def slip() -> str:
        word = rng.choice(words[:5_000])
        return word + "q" if len(word) < 5 else word[:2] + "q" + word[3:]

    return {
        "a word": lambda: rng.choice(middle),
        "a rare word": lambda: rng.choice(words[20_000:]),
        "one of the 20 most common": lambda: f'"{rng.choice(common)}"',
        "two words": lambda: f"{rng.choice(middle)} {rng.choice(middle)}",
        "a common one and a word": lambda: f"{rng.choice(common)} {rng.choice(middle)}",
        "three letters": lambda: rng.choice(words)[:3],
        "two letters": lambda: rng.choice(words)[:2],
        "one letter": lambda: rng.choice(words)[:1],
        "a phrase of common words": lambda: f'"{rng.choice(common)} {rng.choice(common)}"',
        "a slip": slip,
    }


def main() -> None:
    address, seconds = sys.argv[1], float(sys.argv[2])
    kinds = questions(vocabulary())
    connection = http.client.HTTPConnection(address, timeout=60)
    for kind, question in kinds.items():
        times, totals, server = [], 0, 0
        end = time.monotonic() + seconds / len(kinds)
        while time.monotonic() < end or len(times) < 10:
            target = "/v1/catalogue/search?" + urllib.parse.urlencode({"q": question()})
            began = time.monotonic()
            connection.request("GET", target)
            answer = connection.getresponse()
            content = answer.read()
            times.append((time.monotonic() - began) * 1_000)
            if answer.status in (429, 503):
                server += 1
                times.pop()
                time.sleep(0.02)
                continue
            assert answer.status == 200, (answer.status, content)
            totals += json.loads(content)["total"]
        times.sort()
        print(json.dumps({
            "what": kind, "searches": len(times), "refused": server, "found_on_average": round(totals / len(times)),
            "p50_ms": round(times[len(times) // 2], 2), "p99_ms": round(times[int(len(times) * 0.99)], 2),
        }), flush=True)


if __name__ == "__main__":
    main()
