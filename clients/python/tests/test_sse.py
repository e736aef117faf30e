import random
import unittest

from wellspring.sse import Message, SseParser

TEXT = (
    '\ufeff: wellspring\n\nid: 1\ndata: {"a":\ndata: 1}\n\nevent: position\r\nid: 9@ab\r\n'
    'data: {"position":9}\r\n\r\n: heartbeat\r\rid:10\rdata:ö\r\rid: 11\r\ndata:\r\n\n'
    "data: broken off"
).encode()
MESSAGES = [
    Message("message", "1", '{"a":\n1}'),
    Message("position", "9@ab", '{"position":9}'),
    Message("message", "10", "ö"),
    Message("message", "11", ""),
]


class Parsing(unittest.TestCase):
    def test_messages_are_the_same_however_they_are_cut(self) -> None:
        for size in range(1, len(TEXT) + 1):
            parser, found = SseParser(), []
            for at in range(0, len(TEXT), size):
                found += parser.feed(TEXT[at : at + size])
            self.assertEqual(found, MESSAGES, f"pieces of {size}")
        draw = random.Random(1)
        for _ in range(200):
            parser, found, at = SseParser(), [], 0
            while at < len(TEXT):
                end = at + draw.randint(0, 9)
                found += parser.feed(TEXT[at:end])
                at = end
            self.assertEqual(found, MESSAGES)


if __name__ == "__main__":
    unittest.main()
