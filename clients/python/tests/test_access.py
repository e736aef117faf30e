"""Accounts and TLS."""

import os
import ssl
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

from server import RealServer

from wellspring import NO_RETRY, Client, Forbidden, NewEvent, Unauthenticated, Untrusted

PASSWORD = "correct horse battery"


class Access(unittest.TestCase):
    def test_token_key_and_password_over_tls(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            certificate, key, password = folder / "cert.pem", folder / "key.pem", folder / "pw"
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                 "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                 "-keyout", key, "-out", certificate],
                check=True, capture_output=True,
            )  # fmt: skip
            password.write_text(PASSWORD)
            flags = ["--tls-cert", str(certificate), "--tls-key", str(key)]
            server = RealServer(*flags, scheme="https")
            data = ["--data", str(server.data)]
            user = ["--password-file", str(password), *data]
            server.run("user", "add", "ann", "--role", "admin", *user)
            server.run("user", "add", "rita", "--role", "reader", *user)
            secret = server.run("token", "create", "--role", "writer", "--account", "ann", *data)
            with server:
                self.check(server.url, str(certificate), secret.splitlines()[-1])

    def check(self, url: str, ca: str, secret: str) -> None:
        ann = Client(url, basic=("ann", PASSWORD), ca=ca)
        ann.log("orders").create()
        for writer in (Client(url, key=secret, ca=ca), Client(url, token=lambda: secret, ca=ca)):
            writer.log("orders").append([NewEvent("A")])
            with self.assertRaises(Forbidden) as caught:
                writer.log("orders").drop()
            self.assertEqual(caught.exception.type, "forbidden")
        context = ssl.create_default_context(cafile=ca)
        rita = Client(url, basic=("rita", PASSWORD), ssl_context=context).log("orders")
        with rita.subscribe() as followed:
            self.assertEqual(next(followed).position, 1)
            threading.Timer(0.1, followed.close).start()
            self.assertEqual([event.position for event in followed], [2])
        if hasattr(os, "fork"):
            # The child closes its copies of the connections, and the parent goes on.
            once = Client(url, basic=("ann", PASSWORD), ca=ca, retry=NO_RETRY).log("orders")
            once.head()
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    os._exit(0 if once.head().position == 2 else 1)
                self.assertEqual(once.head().position, 2)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                self.assertEqual(once.head().position, 2)
        with self.assertRaises(Forbidden):
            rita.append([NewEvent("A")])
        for stranger in (Client(url, ca=ca), Client(url, token="wsk_nonsense", ca=ca)):
            with self.assertRaises(Unauthenticated):
                stranger.log("orders").head()
            with self.assertRaises(Unauthenticated):
                next(stranger.log("orders").subscribe())
        for untrusting in (Client(url, retry=NO_RETRY), Client(url)):
            with self.assertRaises(Untrusted):
                untrusting.log("orders").head()


if __name__ == "__main__":
    unittest.main()
