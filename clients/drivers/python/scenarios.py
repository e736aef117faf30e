"""Scenarios of Neo4j's Python driver: scenarios.py URI DATABASE [NAME…]; see scenarios.txt."""
import logging
import math
import sys
import threading
import time as clock
import traceback

import neo4j
import pytz
from neo4j import GraphDatabase
from neo4j.exceptions import ClientError, ConfigurationError, Neo4jError
from neo4j.spatial import CartesianPoint, WGS84Point
from neo4j.time import Date, DateTime, Duration, Time

URI, DATABASE, *ONLY = sys.argv[1:]
HTTP = URI.startswith("http")
# 32 writers that return what they wrote need some tries each, and the driver sleeps seconds between them.
driver = GraphDatabase.driver(
    URI, auth=("neo4j", "ignored"), max_connection_pool_size=100, max_transaction_retry_time=120
)
SCENARIOS = {}
# Each try of a transaction that was overtaken is a line otherwise.
logging.getLogger("neo4j").setLevel(logging.ERROR)


class Skipped(Exception):
    """What this driver cannot do over this scheme."""


def scenario(name):
    def add(function):
        SCENARIOS[name] = function
    return add


def session(**settings):
    return driver.session(database=DATABASE, **settings)


def query(text, **parameters):
    return driver.execute_query(text, parameters, database_=DATABASE).records


def same(got, wanted):
    assert type(got) is type(wanted) and got == wanted, f"{got!r} is not {wanted!r}"


def echo(value):
    same(query("RETURN $v AS v", v=value)[0]["v"], value)
    same(query("RETURN [$v, {k: $v}] AS v", v=value)[0]["v"], [value, {"k": value}])


def fails(code, work):
    """The statement fails, with this code at its end."""
    try:
        work()
    except Neo4jError as error:
        assert error.code.endswith("." + code), f"{error.code}: {error.message}"
        return error
    raise AssertionError(f"no error, and not {code}")


def count(label):
    return query(f"MATCH (n:{label}) RETURN count(n) AS c")[0]["c"]


@scenario("connect")
def connect():
    driver.verify_connectivity()
    agent = driver.get_server_info().agent
    assert agent.startswith("Neo4j/"), agent
    # A database need not be named over Bolt.
    HTTP or same(driver.execute_query("RETURN 1 AS one").records[0]["one"], 1)


@scenario("values-scalar")
def values_scalar():
    for value in [None, True, False, 0, -1, 1.5, -0.0, math.inf, -math.inf, "", "ä€𝄞\n\"\\", "x" * 70000]:
        echo(value)
    assert math.isnan(query("RETURN $v AS v", v=math.nan)[0]["v"])
    for value in [b"", b"\x00\x01\xff", bytes(range(256)) * 300]:
        same(bytes(query("RETURN $v AS v", v=value)[0]["v"]), value)


@scenario("values-integer-64")
def values_integer_64():
    for bits in [4, 7, 8, 15, 16, 31, 32, 53, 63]:
        for value in [2**bits - 1, -(2**bits), -(2**bits) + 1]:
            echo(value)


@scenario("values-nested")
def values_nested():
    echo([])
    echo({})
    echo([1, [2, [3.5, ["x", None]]], {"a": {"b": [{"c": True}]}}])
    echo({"list": list(range(1000)), "map": {f"k{n}": n for n in range(300)}})


@scenario("values-temporal")
def values_temporal():
    moment = DateTime(2024, 7, 2, 3, 4, 5, 678_000_009)
    berlin = pytz.timezone("Europe/Berlin")
    for value in [
        Date(2024, 2, 29), Date(1, 1, 1), Date(9999, 12, 31),
        Time(1, 2, 3, 4), Time(23, 59, 59, 999_999_999, tzinfo=pytz.FixedOffset(-90)),
        moment, DateTime(1900, 1, 1), moment.replace(tzinfo=pytz.FixedOffset(90)),
        berlin.localize(moment), berlin.localize(DateTime(2024, 1, 2, 3, 4, 5, 6)),
        Duration(months=14, days=-3, seconds=70, nanoseconds=5), Duration(seconds=-1, nanoseconds=-1), Duration(),
    ]:
        echo(value)
    got = query("RETURN $v.timezone AS zone, $v.year AS year", v=berlin.localize(moment))[0]
    same(list(got), ["Europe/Berlin", 2024])


@scenario("values-spatial")
def values_spatial():
    for value in [WGS84Point((1, 2)), WGS84Point((1, 2, 3)), CartesianPoint((-1.5, 2)), CartesianPoint((1, 2, 3))]:
        echo(value)
    same(query("RETURN $v.srid AS s", v=WGS84Point((1, 2)))[0]["s"], 4326)


@scenario("values-stored")
def values_stored():
    berlin = pytz.timezone("Europe/Berlin")
    properties = {
        "int": 2**63 - 1, "float": 0.1, "text": "ä", "yes": True, "date": Date(2024, 2, 29),
        "time": Time(1, 2, 3, 4, tzinfo=pytz.FixedOffset(60)), "local_time": Time(1, 2, 3),
        "local": DateTime(2024, 1, 2, 3, 4, 5), "offset": DateTime(2024, 1, 2, tzinfo=pytz.FixedOffset(60)),
        "zoned": berlin.localize(DateTime(2024, 7, 2)), "duration": Duration(months=1, days=2, seconds=3),
        "point": WGS84Point((1, 2)), "point3": CartesianPoint((1, 2, 3)),
        "ints": [1, 2], "texts": ["a", "b"], "dates": [Date(2024, 1, 1)], "points": [WGS84Point((3, 4))],
    }
    query("CREATE (n:Stored) SET n = $properties", properties=properties)
    same(dict(query("MATCH (n:Stored) RETURN n")[0]["n"]), properties)
    # And bytes, which Neo4j stores as well.
    query("CREATE (n:StoredBytes {b: $b})", b=b"\x00\xff")
    same(bytes(query("MATCH (n:StoredBytes) RETURN n.b AS b")[0]["b"]), b"\x00\xff")


@scenario("node")
def node():
    got = query("CREATE (n:Node:Second {name: 'Ada', born: 1815}) RETURN n")[0]["n"]
    same(got.labels, frozenset({"Node", "Second"}))
    same(dict(got), {"name": "Ada", "born": 1815})
    same(query("MATCH (n:Node) RETURN n")[0]["n"].element_id, got.element_id)


@scenario("relationship")
def relationship():
    got = query("CREATE (:Rel {n: 1})-[r:KNOWS {since: 2020}]->(:Rel {n: 2}) RETURN r, startNode(r) AS a, endNode(r) AS b")[0]
    r = got["r"]
    same([r.type, dict(r)], ["KNOWS", {"since": 2020}])
    same([r.start_node.element_id, r.end_node.element_id], [got["a"].element_id, got["b"].element_id])


@scenario("path")
def path():
    query("CREATE (:Path {n: 1})-[:NEXT {n: 1}]->(:Path {n: 2})<-[:PREVIOUS {n: 2}]-(:Path {n: 3})")
    there = query("MATCH p = (:Path {n: 1})-[:NEXT]->()<-[:PREVIOUS]-() RETURN p")[0]["p"]
    back = query("MATCH p = (:Path {n: 3})-[:PREVIOUS]->()<-[:NEXT]-() RETURN p")[0]["p"]
    for got, numbers in [(there, [1, 2, 3]), (back, [3, 2, 1])]:
        same([n["n"] for n in got.nodes], numbers)
        same(len(got.relationships), 2)
        by_type = {r.type: (r.start_node["n"], r.end_node["n"]) for r in got.relationships}
        same(by_type, {"NEXT": (1, 2), "PREVIOUS": (3, 2)})
    same([there.start_node["n"], there.end_node["n"]], [1, 3])
    same(len(query("MATCH p = (n:Path {n: 1}) RETURN p")[0]["p"].relationships), 0)
    # A node that occurs twice.
    twice = query("MATCH (a:Path {n: 1}) CREATE p = (a)-[:LOOP]->(a) RETURN p")[0]["p"]
    same([n["n"] for n in twice.nodes], [1, 1])


@scenario("element-ids")
def element_ids():
    got = query("CREATE (a:Ids)-[r:OF]->(b:Ids) RETURN a, r, b, elementId(a) AS ea, elementId(r) AS er")[0]
    same([got["a"].element_id, got["r"].element_id], [got["ea"], got["er"]])
    assert got["ea"] != got["b"].element_id
    found = query("MATCH (n) WHERE elementId(n) = $id RETURN n", id=got["ea"])
    same([r["n"].element_id for r in found], [got["ea"]])


@scenario("auto-commit")
def auto_commit():
    with session() as s:
        s.run("CREATE (:Auto)").consume()
        s.run("CREATE (:Auto)")
        same([r["x"] for r in s.run("UNWIND range(1, 3) AS x RETURN x")], [1, 2, 3])
    same(count("Auto"), 2)


@scenario("explicit")
def explicit():
    with session() as s, s.begin_transaction() as tx:
        tx.run("CREATE (:Explicit {n: 1})")
        same(tx.run("MATCH (n:Explicit) RETURN count(n) AS c").single()["c"], 1)
        same(count("Explicit"), 0)
        tx.run("MATCH (n:Explicit) SET n.n = n.n + 1").consume()
        tx.commit()
    same(query("MATCH (n:Explicit) RETURN n.n AS n")[0]["n"], 2)


@scenario("managed")
def managed():
    with session() as s:
        made = s.execute_write(lambda tx: tx.run("CREATE (n:Managed) RETURN elementId(n) AS id").single()["id"])
        same(s.execute_read(lambda tx: tx.run("MATCH (n:Managed) RETURN elementId(n) AS id").single()["id"]), made)


@scenario("counters")
def counters():
    def summary(text):
        return driver.execute_query(text, database_=DATABASE).summary

    made = summary("CREATE (a:Counters {n: 1, m: 2})-[:R]->(:Counters:Other)")
    c = made.counters
    same([c.nodes_created, c.relationships_created, c.properties_set, c.labels_added], [2, 1, 2, 3])
    assert c.contains_updates and not c.contains_system_updates
    same(made.query_type, "w")
    c = summary("MATCH (a:Counters) REMOVE a:Other DETACH DELETE a").counters
    same([c.nodes_deleted, c.relationships_deleted, c.labels_removed], [2, 1, 1])
    c = summary("CREATE INDEX counters_n FOR (n:Counters) ON (n.n)").counters
    same(c.indexes_added, 1)
    c = summary("DROP INDEX counters_n").counters
    same(c.indexes_removed, 1)
    c = summary("CREATE CONSTRAINT counters_u FOR (n:Counters) REQUIRE n.u IS UNIQUE").counters
    same(c.constraints_added, 1)
    same(summary("DROP CONSTRAINT counters_u").counters.constraints_removed, 1)
    read = summary("MATCH (n:Counters) RETURN n")
    assert not read.counters.contains_updates
    same([read.query_type, read.database], ["r", DATABASE])


def conflict(label, statement, each, check):
    """32 writers add to one counter; the driver's own loop repeats what was overtaken."""
    writers = 32
    query(f"CREATE (:{label} {{n: 0}})")
    seen, errors = [], []

    def write():
        try:
            with session() as s:
                for _ in range(each):
                    seen.append(s.execute_write(lambda tx: check(tx.run(statement))))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[:3]
    same(query(f"MATCH (n:{label}) RETURN n.n AS n")[0]["n"], writers * each)
    return seen


@scenario("conflict-returning")
def conflict_returning():
    statement = "MATCH (n:Returning) SET n.n = n.n + 1 RETURN n.n AS n"
    seen = conflict("Returning", statement, 2, lambda result: result.single()["n"])
    same(sorted(seen), list(range(1, 65)))


@scenario("conflict-silent")
def conflict_silent():
    conflict("Silent", "MATCH (n:Silent) SET n.n = n.n + 1", 10, lambda result: result.consume() and None)


@scenario("rollback-explicit")
def rollback_explicit():
    with session() as s:
        tx = s.begin_transaction()
        tx.run("CREATE (:Rolled)").consume()
        tx.rollback()
        tx = s.begin_transaction()
        tx.run("CREATE (:Rolled)")
        tx.close()
        # The connection is as good as new.
        same(s.run("MATCH (n:Rolled) RETURN count(n) AS c").single()["c"], 0)


@scenario("rollback-error")
def rollback_error():
    with session() as s:
        tx = s.begin_transaction()
        tx.run("CREATE (:RolledByError)").consume()
        fails("ArithmeticError", lambda: tx.run("RETURN 1/0").consume())
        tx.close()
        same(s.run("MATCH (n:RolledByError) RETURN count(n) AS c").single()["c"], 0)

        def work(tx):
            tx.run("CREATE (:RolledByError)").consume()
            raise KeyError("the program's own")

        try:
            s.execute_write(work)
            raise AssertionError("no error")
        except KeyError:
            pass
        same(s.run("MATCH (n:RolledByError) RETURN count(n) AS c").single()["c"], 0)


@scenario("rollback-closed")
def rollback_closed():
    with GraphDatabase.driver(URI, auth=("neo4j", "ignored")) as other:
        tx = other.session(database=DATABASE).begin_transaction()
        tx.run("CREATE (:Closed)").consume()
    same(count("Closed"), 0)


@scenario("rollback-timeout")
def rollback_timeout():
    if HTTP:
        raise Skipped("the Query API has no timeouts")
    with session() as s:
        tx = s.begin_transaction(timeout=0.5)
        tx.run("CREATE (:Late)").consume()
        busy = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y RETURN count(x + y)"
        fails_like("TransactionTimedOut", lambda: tx.run(busy).consume())
        tx.close()
        # A transaction that nobody uses ends as well.
        tx = s.begin_transaction(timeout=0.3)
        tx.run("CREATE (:Late)").consume()
        clock.sleep(1)
        fails_like("TransactionTimedOut", lambda: tx.run("CREATE (:Late)").consume())
        tx.close()
    same(count("Late"), 0)


def fails_like(code, work):
    """Newer servers distinguish who set the limit, by more words at the code's end."""
    try:
        work()
    except Neo4jError as error:
        assert error.code.split(".")[-1].startswith(code), f"{error.code}: {error.message}"
        return
    raise AssertionError(f"no error, and not {code}")


@scenario("error-syntax")
def error_syntax():
    error = fails("SyntaxError", lambda: query("RETRUN 1"))
    assert isinstance(error, neo4j.exceptions.CypherSyntaxError) and not error.is_retryable()


@scenario("error-arithmetic")
def error_arithmetic():
    fails("ArithmeticError", lambda: query("RETURN 1/0"))


@scenario("error-parameter")
def error_parameter():
    fails("ParameterMissing", lambda: query("RETURN $missing"))


@scenario("error-constraint")
def error_constraint():
    query("CREATE CONSTRAINT once FOR (n:Once) REQUIRE n.id IS UNIQUE")
    query("CREATE (:Once {id: 1})")
    error = fails("ConstraintValidationFailed", lambda: query("CREATE (:Once {id: 1})"))
    assert isinstance(error, neo4j.exceptions.ConstraintError)
    same(count("Once"), 1)


@scenario("error-database")
def error_database():
    fails("DatabaseNotFound", lambda: driver.execute_query("RETURN 1", database_="elsewhere"))


@scenario("error-access-mode")
def error_access_mode():
    with session(default_access_mode=neo4j.READ_ACCESS) as s:
        fails("AccessMode", lambda: s.run("CREATE (:ReadOnly)").consume())
        fails("AccessMode", lambda: s.execute_read(lambda tx: tx.run("CREATE (:ReadOnly)").consume()))
        same(s.run("RETURN 1 AS one").single()["one"], 1)
    same(count("ReadOnly"), 0)


@scenario("bookmarks")
def bookmarks():
    with session() as s:
        s.run("CREATE (:Marked {n: 1})").consume()
        first = s.last_bookmarks()
        assert first.raw_values
    with session(bookmarks=first) as s:
        same(s.run("MATCH (n:Marked) RETURN n.n AS n").single()["n"], 1)
        s.execute_write(lambda tx: tx.run("CREATE (:Marked {n: 2})").consume())
        second = s.last_bookmarks()
        assert second.raw_values != first.raw_values
    with session(bookmarks=first + second) as s, s.begin_transaction() as tx:
        same(tx.run("MATCH (n:Marked) RETURN count(n) AS c").single()["c"], 2)
    bad = neo4j.Bookmarks.from_raw_values(["no bookmark"])
    with session(bookmarks=bad) as s:
        fails_like("InvalidBookmark", lambda: s.run("RETURN 1").consume())


@scenario("system")
def system():
    names = [r["name"] for r in driver.execute_query("SHOW DATABASES", database_="system").records]
    assert {DATABASE, "system"} <= set(names), names
    got = driver.execute_query("CALL dbms.components()", database_="system").records[0]
    same(got["name"], "Neo4j Kernel")
    assert got["versions"][0].startswith("5."), got


@scenario("rows-100000")
def rows():
    with session(fetch_size=1000) as s:
        total = rows = 0
        for record in s.run("UNWIND range(1, 100000) AS x RETURN x, 'row ' + x AS text, [x, x] AS list"):
            total, rows = total + record["x"], rows + 1
        same([rows, total], [100_000, 5_000_050_000])
    with session(fetch_size=1) as s:
        same(sum(1 for _ in s.run("UNWIND range(1, 10000) AS x RETURN x")), 10_000)


@scenario("interleaved")
def interleaved():
    with session(fetch_size=2) as s, s.begin_transaction() as tx:
        first = tx.run("UNWIND range(1, 100) AS x RETURN x")
        second = tx.run("UNWIND range(101, 200) AS x RETURN x")
        pairs = [(next(a)["x"], next(b)["x"]) for a, b in [(iter(first), iter(second))] for _ in range(100)]
        same(pairs, [(n, n + 100) for n in range(1, 101)])
        for record in tx.run("UNWIND range(1, 5) AS x RETURN x"):
            tx.run("CREATE (:Nested {n: $n})", n=record["x"])
        tx.commit()
    same(count("Nested"), 5)


@scenario("metadata")
def metadata():
    if HTTP:
        raise Skipped("the Query API has no transaction metadata")
    sent = {"app": "scenarios", "step": 1}
    with session() as s:
        with s.begin_transaction(metadata=sent) as tx:
            same(tx.run("CALL tx.getMetaData() YIELD metadata RETURN metadata").single()["metadata"], sent)
        text = neo4j.Query("CALL tx.getMetaData()", metadata=sent)
        same(s.run(text).single()["metadata"], sent)


@scenario("unconsumed")
def unconsumed():
    with session(fetch_size=10) as s:
        result = s.run("UNWIND range(1, 20000) AS x RETURN x")
        same(next(iter(result))["x"], 1)
        # Its rest is discarded by the next statement's need of the connection, and by the session's end.
        same(s.run("RETURN 1 AS one").single()["one"], 1)
        s.run("UNWIND range(1, 20000) AS x RETURN x")
    with session(fetch_size=10) as s, s.begin_transaction() as tx:
        tx.run("UNWIND range(1, 20000) AS x RETURN x")
        tx.run("CREATE (:Unconsumed)")
        tx.commit()
    same(count("Unconsumed"), 1)


@scenario("explain")
def explain():
    summary = driver.execute_query("EXPLAIN MATCH (n:Explained) RETURN n", database_=DATABASE).summary
    assert summary.plan and summary.plan["operatorType"], summary.plan
    driver.execute_query("EXPLAIN CREATE (:Explained)", database_=DATABASE)
    same(count("Explained"), 0)


def main():
    failed = 0
    for name, work in SCENARIOS.items():
        if ONLY and name not in ONLY:
            continue
        began = clock.monotonic()
        try:
            work()
            print(f"ok {name} ({clock.monotonic() - began:.1f} s)")
        except Skipped as why:
            print(f"skipped {name}: {why}")
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")
            if ONLY:
                traceback.print_exc()
        sys.stdout.flush()
    driver.close()
    sys.exit(1 if failed else 0)


main()
