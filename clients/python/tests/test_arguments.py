"""What a caller gives is checked before it is sent, and no error shows a secret."""

import traceback
import unittest

from server import FakeServer, json_answer

from wellspring import Client, Event, NewEvent

DONE = {"first": 1, "last": 1, "head": 1, "replayed": False}


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.server = FakeServer(lambda request: json_answer(200, DONE))
        self.addCleanup(self.server.__exit__)
        self.client = Client(self.server.url)
        self.log = self.client.log("x")

    def refused(self, kind: type[Exception], words: str, action) -> None:
        with self.assertRaisesRegex(kind, words):
            action()
        self.assertEqual(self.server.requests, [], "nothing was sent")

    def test_a_secret_that_no_header_can_carry_is_refused_and_not_shown(self) -> None:
        secrets = {"hush\n": "strip it", "hu\nsh": "ASCII", "hush€": "ASCII", "": "not be empty"}
        secrets["hush\ud800"] = "ASCII"
        for secret, words in secrets.items():
            for name in ("token", "key"):
                for given in (secret, lambda: secret):
                    with self.assertRaisesRegex(ValueError, f"^{name} .*{words}") as caught:
                        Client(self.server.url, **{name: given}).log("x").head()
                    shown = "".join(traceback.format_exception(*self.parts(caught.exception)))
                    self.assertNotIn("hush", shown)
                    self.assertIsNone(caught.exception.__context__)
        for password in ("hush\n", "hush\ud800"):
            with self.assertRaises(ValueError) as caught:
                Client(self.server.url, basic=("ann", password))
            self.assertNotIn("hush", repr(caught.exception))
            self.assertIsNone(caught.exception.__context__)
        self.refused(
            TypeError,
            "token must be a text, not NoneType",
            lambda: Client(self.server.url, token=lambda: None).log("x").head(),
        )

    @staticmethod
    def parts(error: BaseException):
        # Without the lines of this test, which name the secret.
        return type(error), error, None

    def test_an_idempotency_key_is_checked(self) -> None:
        events = [NewEvent("A")]
        for append in (
            lambda key: self.log.append(events, key=key),
            lambda key: self.log.append_bulk(events, key=key),
            lambda key: self.client.links.create("http://example.com", key=key),
        ):
            self.refused(ValueError, "key must not be empty", lambda: append(""))
            self.refused(ValueError, "strip it", lambda: append("k\n"))
            self.refused(ValueError, "ASCII", lambda: append("ключ"))
            self.refused(TypeError, "key must be a text, not int", lambda: append(5))
            self.refused(ValueError, "256 bytes; .* 2[35][05] bytes", lambda: append("k" * 256))
        bulk_key = "231 bytes; the limit here is 230"
        self.refused(ValueError, bulk_key, lambda: self.log.append_bulk(events, key="k" * 231))

    def test_what_is_no_event_is_named(self) -> None:
        event = NewEvent("A")
        read = Event(1, "A", (), None, "")
        for append in (self.log.append, self.log.append_bulk):
            for wrong in ({"type": "A"}, "A", None, read):
                words = rf"events\[1\] is of type {type(wrong).__name__}; make it a NewEvent"
                self.refused(TypeError, words, lambda: append([event, wrong]))
            for wrong in (event, "text", {"type": "A"}):
                self.refused(TypeError, "must be a list of NewEvent", lambda: append(wrong))

    def test_one_text_is_no_list_of_tags(self) -> None:
        links = self.client.links
        for action in (
            lambda: self.log.append([NewEvent("A", tags="abc")]),
            lambda: self.log.ingest(1, tags="abc"),
            lambda: links.create("http://example.com", tags="abc"),
            lambda: links.change("a", tags="abc"),
        ):
            self.refused(TypeError, "tags must be a list of texts", action)

    def test_seconds_are_whole(self) -> None:
        links = self.client.links
        for wrong in (1.5, float("nan"), float("inf")):
            words = "expires_in_s must be a whole number"
            create = links.create
            self.refused(ValueError, words, lambda: create("http://e.com", expires_in_s=wrong))
        try:
            links.create("http://e.com", expires_in_s=60.0)
        except Exception:
            pass  # The fake does not answer with a link.
        self.assertIn(b'"expires_in_s":60}', self.server.requests[0].body)

    def test_a_name_is_one_segment_of_a_path(self) -> None:
        links = self.client.links
        for name in ("", ".", "..", "\ud800"):
            for action in (
                lambda: self.client.log(name),
                lambda: self.log.event_by_id(name),
                lambda: self.log.acquire_lease(name, 1),
                lambda: links.get(name),
                lambda: links.change(name, enabled=True),
                lambda: links.delete(name),
                lambda: links.stats(name),
            ):
                self.refused(ValueError, "cannot be|half a character", action)
        for position in ("../head", "1", 1.5, None):
            self.refused(TypeError, "", lambda: self.log.event(position))
        self.refused(TypeError, "must be a text", lambda: self.client.log(None))

    def test_half_a_character_is_named(self) -> None:
        for action in (
            lambda: self.log.append([NewEvent("A", {"a": ["x\ud800"]})]),
            lambda: self.log.append([NewEvent("\udfff")]),
            lambda: self.log.append_bulk([NewEvent("A", "\ud800")]),
            lambda: self.log.ingest(1, tags=["\ud800"]),
            lambda: self.client.links.create("http://example.com/\ud800"),
            lambda: list(self.client.links.list(search="\ud800")),
        ):
            self.refused(ValueError, "U[+]D[8F][0F][0F], half a character", action)


if __name__ == "__main__":
    unittest.main()
