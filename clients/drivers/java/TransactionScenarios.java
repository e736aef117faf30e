import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.stream.LongStream;
import org.neo4j.driver.AccessMode;
import org.neo4j.driver.QueryConfig;
import org.neo4j.driver.Result;
import org.neo4j.driver.SessionConfig;
import org.neo4j.driver.TransactionConfig;
import org.neo4j.driver.summary.QueryType;
import org.neo4j.driver.summary.ResultSummary;

/** Transactions: committed, overtaken, rolled back and refused. */
class TransactionScenarios extends Scenarios {
    static void add(Map<String, Work> all) {
        all.put("auto-commit", TransactionScenarios::autoCommit);
        all.put("explicit", TransactionScenarios::explicit);
        all.put("managed", TransactionScenarios::managed);
        all.put("counters", TransactionScenarios::counters);
        all.put("conflict-returning", TransactionScenarios::conflictReturning);
        all.put("conflict-silent", TransactionScenarios::conflictSilent);
        all.put("rollback-explicit", TransactionScenarios::rollbackExplicit);
        all.put("rollback-error", TransactionScenarios::rollbackError);
        all.put("rollback-closed", TransactionScenarios::rollbackClosed);
        all.put("rollback-timeout", TransactionScenarios::rollbackTimeout);
        all.put("error-syntax", () -> fails("SyntaxError", () -> query("RETRUN 1")));
        all.put("error-arithmetic", () -> fails("ArithmeticError", () -> query("RETURN 1/0")));
        all.put("error-parameter", () -> fails("ParameterMissing", () -> query("RETURN $missing")));
        all.put("error-constraint", TransactionScenarios::errorConstraint);
        all.put("error-database", TransactionScenarios::errorDatabase);
        all.put("error-access-mode", TransactionScenarios::errorAccessMode);
    }

    static void autoCommit() {
        session(session -> {
            session.run("CREATE (:Auto)").consume();
            session.run("CREATE (:Auto)");
            same(session.run("UNWIND range(1, 3) AS x RETURN x").list(r -> r.get("x").asLong()), List.of(1L, 2L, 3L));
        });
        same(count("Auto"), 2L);
    }

    static void explicit() {
        session(session -> {
            try (var tx = session.beginTransaction()) {
                tx.run("CREATE (:Explicit {n: 1})");
                same(tx.run("MATCH (n:Explicit) RETURN count(n)").single().get(0).asLong(), 1L);
                same(count("Explicit"), 0L);
                tx.run("MATCH (n:Explicit) SET n.n = n.n + 1").consume();
                tx.commit();
            }
        });
        same(one("MATCH (n:Explicit) RETURN n.n").asLong(), 2L);
    }

    static void managed() {
        session(session -> {
            var made = session.executeWrite(tx -> tx.run("CREATE (n:Managed) RETURN elementId(n)").single().get(0).asString());
            same(session.executeRead(tx -> tx.run("MATCH (n:Managed) RETURN elementId(n)").single().get(0).asString()), made);
        });
    }

    static ResultSummary summary(String text) {
        return execute(text, Map.of()).summary();
    }

    static void counters() {
        var made = summary("CREATE (a:Counters {n: 1, m: 2})-[:R]->(:Counters:Other)");
        var c = made.counters();
        same(List.of(c.nodesCreated(), c.relationshipsCreated(), c.propertiesSet(), c.labelsAdded()), List.of(2, 1, 2, 3));
        check(c.containsUpdates() && made.queryType() == QueryType.WRITE_ONLY, made.queryType());
        c = summary("MATCH (a:Counters) REMOVE a:Other DETACH DELETE a").counters();
        same(List.of(c.nodesDeleted(), c.relationshipsDeleted(), c.labelsRemoved()), List.of(2, 1, 1));
        same(summary("CREATE INDEX counters_n FOR (n:Counters) ON (n.n)").counters().indexesAdded(), 1);
        same(summary("DROP INDEX counters_n").counters().indexesRemoved(), 1);
        same(summary("CREATE CONSTRAINT counters_u FOR (n:Counters) REQUIRE n.u IS UNIQUE").counters().constraintsAdded(), 1);
        same(summary("DROP CONSTRAINT counters_u").counters().constraintsRemoved(), 1);
        var read = summary("MATCH (n:Counters) RETURN n");
        check(!read.counters().containsUpdates() && read.queryType() == QueryType.READ_ONLY, read.queryType());
        same(read.database().name(), database);
    }

    /** 32 writers add to one counter; the driver's own loop repeats what was overtaken. */
    static List<Long> conflict(String label, String statement, int each, Function<Result, Long> read) throws Exception {
        query("CREATE (:" + label + " {n: 0})");
        List<Long> seen = Collections.synchronizedList(new ArrayList<>());
        Callable<Void> writer = () -> {
            session(session -> {
                for (var n = 0; n < each; n++) seen.add(session.executeWrite(tx -> read.apply(tx.run(statement))));
            });
            return null;
        };
        var threads = Executors.newFixedThreadPool(32);
        try {
            for (var done : threads.invokeAll(Collections.nCopies(32, writer))) done.get();
        } finally {
            threads.shutdown();
        }
        same(one("MATCH (n:" + label + ") RETURN n.n").asLong(), 32L * each);
        return seen;
    }

    static void conflictReturning() throws Exception {
        var statement = "MATCH (n:Returning) SET n.n = n.n + 1 RETURN n.n";
        var seen = conflict("Returning", statement, 2, result -> result.single().get(0).asLong());
        same(seen.stream().sorted().toList(), LongStream.rangeClosed(1, 64).boxed().toList());
    }

    static void conflictSilent() throws Exception {
        conflict("Silent", "MATCH (n:Silent) SET n.n = n.n + 1", 10, result -> (long) result.consume().counters().propertiesSet());
    }

    static void rollbackExplicit() {
        session(session -> {
            var tx = session.beginTransaction();
            tx.run("CREATE (:Rolled)").consume();
            tx.rollback();
            try (var closed = session.beginTransaction()) {
                closed.run("CREATE (:Rolled)");
            }
            same(session.run("MATCH (n:Rolled) RETURN count(n)").single().get(0).asLong(), 0L);
        });
    }

    static void rollbackError() {
        session(session -> {
            try (var tx = session.beginTransaction()) {
                tx.run("CREATE (:RolledByError)").consume();
                fails("ArithmeticError", () -> tx.run("RETURN 1/0").consume());
            }
            var own = new IllegalStateException("the program's own");
            try {
                session.executeWriteWithoutResult(tx -> {
                    tx.run("CREATE (:RolledByError)").consume();
                    throw own;
                });
                throw new AssertionError("no error");
            } catch (IllegalStateException error) {
                same(error, own);
            }
            same(session.run("MATCH (n:RolledByError) RETURN count(n)").single().get(0).asLong(), 0L);
        });
    }

    static void rollbackClosed() {
        try (var other = connected()) {
            other.session(SessionConfig.forDatabase(database)).beginTransaction().run("CREATE (:Closed)").consume();
        }
        same(count("Closed"), 0L);
    }

    static void rollbackTimeout() {
        var busy = "UNWIND range(1, 100000) AS x UNWIND range(1, 100000) AS y RETURN count(x + y)";
        session(session -> {
            try (var tx = session.beginTransaction(limit(500))) {
                tx.run("CREATE (:Late)").consume();
                fails("TransactionTimedOut", () -> tx.run(busy).consume());
            }
            try (var tx = session.beginTransaction(limit(300))) {
                tx.run("CREATE (:Late)").consume();
                Thread.sleep(1000);
                fails("TransactionTimedOut", () -> tx.run("CREATE (:Late)").consume());
            } catch (InterruptedException never) {
                throw new AssertionError(never);
            }
        });
        same(count("Late"), 0L);
    }

    static TransactionConfig limit(int milliseconds) {
        return TransactionConfig.builder().withTimeout(Duration.ofMillis(milliseconds)).build();
    }

    static void errorConstraint() {
        query("CREATE CONSTRAINT once FOR (n:Once) REQUIRE n.id IS UNIQUE");
        query("CREATE (:Once {id: 1})");
        fails("ConstraintValidationFailed", () -> query("CREATE (:Once {id: 1})"));
        same(count("Once"), 1L);
    }

    static void errorDatabase() {
        var elsewhere = QueryConfig.builder().withDatabase("elsewhere").build();
        fails("DatabaseNotFound", () -> driver.executableQuery("RETURN 1").withConfig(elsewhere).execute());
    }

    static void errorAccessMode() {
        session(SessionConfig.builder().withDefaultAccessMode(AccessMode.READ), session -> {
            fails("AccessMode", () -> session.run("CREATE (:ReadOnly)").consume());
            fails("AccessMode", () -> session.executeRead(tx -> tx.run("CREATE (:ReadOnly)").consume()));
            same(session.run("RETURN 1").single().get(0).asLong(), 1L);
        });
        same(count("ReadOnly"), 0L);
    }
}
