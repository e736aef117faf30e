"""POST /e over a few connections, many requests on the way on each (HTTP/1.1 pipelining): what a server takes in when its
clients cost next to nothing. Usage: pipelined.py URL COUNT DATA. Prints events a second, as answered."""
import socket
import sys
import threading
import time
import urllib.parse

DEPTH, CONNECTIONS = 64, 4
url, count, data = urllib.parse.urlsplit(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
request = (f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
           f"Content-Length: {len(data)}\r\n\r\n{data}").encode()
STATUS = b"HTTP/1.1 202"
faults = []


def answers(connection, wanted):
    """Reads so many answers, each a 202."""
    buffer, got = b"", 0
    while got < wanted:
        read = connection.recv(1 << 16)
        if not read:
            raise ConnectionError("the server closed the connection")
        buffer += read
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            head = buffer[:end]
            if not head.startswith(STATUS):
                raise ValueError(head.decode(errors="replace"))
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            if len(buffer) < end + 4 + length:
                break
            buffer, got = buffer[end + 4 + length:], got + 1


def send(share):
    try:
        with socket.create_connection((url.hostname, url.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while share > 0:
                some = min(DEPTH, share)
                connection.sendall(request * some)
                answers(connection, some)
                share -= some
    except Exception as fault:  # told below, by the thread that can end the program
        faults.append(fault)


shares = [count // CONNECTIONS + (n < count % CONNECTIONS) for n in range(CONNECTIONS)]
begun = time.monotonic()
threads = [threading.Thread(target=send, args=(share,)) for share in shares]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if faults:
    sys.exit(f"{faults[0]!r}")
print(count / (time.monotonic() - begun))
