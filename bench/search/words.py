"""A vocabulary and texts drawn from it by Zipf, always the same."""

import random

CONSONANTS, VOWELS = "bcdfghjklmnprstvwz", "aeiou"
SIZE = 50_000


def vocabulary() -> list:
    """Words of two to five syllables; earlier ones are more common and shorter."""
    rng = random.Random(17)
    words, known = [], set()
    while len(words) < SIZE:
        syllables = 2 if len(words) < 4_000 else rng.randint(3, 5)
        word = "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables))
        if word not in known:
            known.add(word)
            words.append(word)
    return words


class Texts:
    """Draws words by Zipf."""

    def __init__(self, seed: int):
        self.words = vocabulary()
        self.rng = random.Random(seed)
        total, self.sums = 0.0, []
        for rank in range(1, SIZE + 1):
            total += 1 / rank
            self.sums.append(total)

    def text(self, least: int, most: int) -> str:
        count = self.rng.randint(least, most)
        return " ".join(self.rng.choices(self.words, cum_weights=self.sums, k=count))
