"""Drives run-kafka.sh: what its parts do stands there. Leaves rows as JSON lines."""
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

HUB = sys.argv[1]
ENV = os.environ
ROUNDS, SECS = int(ENV["rounds"]), int(ENV["secs"])
EVENTS, RECORDS, HOOKS = int(ENV["events"]), int(ENV["records"]), int(ENV["hooks"])
WORK, BROKERS, PARTS = ENV["work"], ENV["brokers"], ENV["parts"].split()
DATA = '{"order":17,"customer":"c-1234","amount":1290,"currency":"EUR","note":"a line of about a hundred bytes"}'


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(HUB + path, data=data, method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}")
    return json.loads(content) if content else None


def tool(*words, output=None):
    words = [ENV["kafka"], "tool", WORK + "/kafka", *words]
    if output:
        with open(output, "wb") as file:
            return subprocess.run(words, stdout=file, stderr=subprocess.DEVNULL)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def row(**members):
    with open(ENV["out"], "a") as file:
        file.write(json.dumps(members) + "\n")


def topic(name, partitions=4):
    tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", BROKERS, "--create", "--topic", name,
         "--partitions", str(partitions))


def bench(path, *flags):
    """One run of the load tester: its first endpoint's figures."""
    told = WORK + "/run.json"
    subprocess.run([ENV["wellspring"], "bench", HUB + path, "--threads", "1", "--no-pin", "--no-headroom", "--quiet",
                    "--json", told, *flags], capture_output=True)
    run = json.load(open(told))["steps"][0]["runs"][0]
    endpoint = run["endpoints"][0]
    tally = endpoint["counters"]
    if not tally["successes"] or tally["errors"]:
        raise SystemExit(f"{path}: {tally}")
    return {"rate": tally["successes"] / (run["measured_ns"] / 1e9), "sent": tally["successes"],
            "p50_us": endpoint["service"]["quantiles_ns"]["p50"] / 1e3}


def until(what, reached, seconds=600):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if reached():
            return
        time.sleep(0.02)
    raise SystemExit(f"{what}: not within {seconds} s")


def sink(name):
    report = ask("GET", "/v1/sinks/" + name)
    if report["state"] == "stopped":
        raise SystemExit(f"the sink {name}: {report}")
    return report


def head(log):
    return ask("GET", f"/v1/logs/{log}/head")["head"]


def positions_in(name):
    """The positions of the committed records of a topic, as Kafka's own consumer gives them, by partition."""
    output = WORK + "/consumed.txt"
    tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", BROKERS, "--topic", name,
         "--from-beginning", "--isolation-level", "read_committed", "--timeout-ms", "15000",
         "--property", "print.headers=true", "--property", "print.value=false", "--property", "print.partition=true",
         output=output)
    partitions = {}
    for line in open(output):
        partition, headers = line.rstrip("\n").split("\t")[:2]
        position = next(h for h in headers.split(",") if h.startswith("wellspring-position:"))
        partitions.setdefault(partition, []).append(int(position.split(":")[1]))
    return partitions


def java_producer(name, count):
    payload = WORK + "/payload.txt"
    with open(payload, "w") as file:
        file.write(DATA + "\n")
    printed = tool("org.apache.kafka.tools.ProducerPerformance", "--topic", name, "--num-records", str(count),
                   "--payload-file", payload, "--throughput", "-1", "--producer-props",
                   "bootstrap.servers=" + BROKERS, "acks=all")
    last = [line for line in printed.splitlines() if "records/sec" in line][-1]
    return float(last.split("records sent, ")[1].split(" records/sec")[0])


def keep_alive(path):
    """64 connections, a request at a time on each."""
    return bench(path, "-c", "64", "-n", str(EVENTS), "-d", DATA, "--expect", "202")["rate"]


def pipelined(path):
    """Four connections, 64 requests on the way on each."""
    words = [sys.executable, "kafka/pipelined.py", HUB + path, str(EVENTS), DATA]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def deliver(round_, label, send):
    """Sends EVENTS; how many a second were in the topic, once each and in order, and how fast they were taken in."""
    log, name = f"end{round_}-{label}", f"end-{round_}-{label}"
    topic(name)
    ask("PUT", "/v1/logs/" + log)
    ask("PUT", "/v1/sinks/" + name, {"log": log, "brokers": [BROKERS], "topic": name})
    until("the sink runs", lambda: sink(name)["state"] == "running", 60)
    begun = time.monotonic()
    sent = send(f"/v1/logs/{log}/e")
    until("all is stored", lambda: head(log) >= EVENTS)
    until("all is delivered", lambda: sink(name)["position"] >= EVENTS)
    seconds = time.monotonic() - begun
    ask("DELETE", "/v1/sinks/" + name)
    partitions = positions_in(name)
    delivered = sorted(p for positions in partitions.values() for p in positions)
    assert all(positions == sorted(positions) for positions in partitions.values()), "order"
    assert delivered == list(range(1, head(log) + 1)), f"{len(delivered)} of {head(log)}"
    row(part="end", side=label, round=round_, rate=len(delivered) / seconds, ingest_rate=sent, counted=len(delivered))


def end_to_end():
    for round_ in range(ROUNDS):
        def java():
            name = f"java-{round_}"
            topic(name)
            row(part="end", side="java", round=round_, rate=java_producer(name, EVENTS))

        parts = [java] + [lambda label=label, send=send: deliver(round_, label, send)
                          for label, send in (("pipelined", pipelined), ("keep-alive", keep_alive))]
        for part in parts if round_ % 2 == 0 else reversed(parts):
            part()


def beside():
    topic("beside")
    ask("PUT", "/v1/logs/beside")
    ask("PUT", "/v1/sinks/beside", {"log": "beside", "brokers": [BROKERS], "topic": "beside"})
    until("the sink runs", lambda: sink("beside")["state"] == "running", 60)
    event = '{"events":[{"type":"OrderPlaced","tags":["customer:1"],"data":' + DATA + "}]}"

    def caught_up():
        until("the sink has caught up", lambda: sink("beside")["lag"] == 0)

    for case, path, flags, value in (
        ("append p50, one client", "/v1/logs/beside/append", ["-c", "1", "-d", event], "p50_us"),
        ("`POST /e`, 64 clients", "/v1/logs/beside/e", ["-c", "64", "-d", DATA, "--expect", "202"], "rate"),
    ):
        for round_ in range(2 * ROUNDS):
            for state in ("resume", "pause") if round_ % 2 == 0 else ("pause", "resume"):
                ask("POST", "/v1/sinks/beside/" + state)
                if state == "resume":
                    until("the sink runs", lambda: sink("beside")["state"] == "running", 60)
                    caught_up()
                else:
                    time.sleep(1)
                seen = bench(path, *flags, "-z", f"{SECS}s", "--warmup", "1s")[value]
                row(part="beside", case=case, state=state, round=round_, value=seen)
    ask("DELETE", "/v1/sinks/beside")


def source():
    for round_ in range(ROUNDS):
        for partitions in (1, 4):
            log, name = f"source{round_}-{partitions}", f"source-{round_}-{partitions}"
            topic(name, partitions)
            java_producer(name, RECORDS)
            ask("PUT", "/v1/logs/" + log)
            begun = time.monotonic()
            ask("PUT", "/v1/sources/" + name, {"log": log, "brokers": [BROKERS], "topic": name, "type": "OrderPlaced",
                                               "tags": ["customer:{value:/customer}"]})
            until("all is read", lambda: ask("GET", "/v1/sources/" + name)["events"] >= RECORDS)
            rate = RECORDS / (time.monotonic() - begun)
            ask("DELETE", "/v1/sources/" + name)
            row(part="source", round=round_, partitions=partitions, rate=rate)


def webhook():
    for round_ in range(ROUNDS):
        printed = subprocess.run([ENV["webhook_rate"], str(HOOKS), "64"], check=True, capture_output=True, text=True).stdout
        rate = float(re.search(r"([\d,.]+) requests/s", printed).group(1).replace(",", ""))
        row(part="webhook", round=round_, rate=rate)


for part, measure in (("end", end_to_end), ("beside", beside), ("source", source), ("webhook", webhook)):
    if part in PARTS:
        measure()
