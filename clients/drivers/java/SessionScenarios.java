import java.util.List;
import java.util.Map;
import java.util.Set;
import org.neo4j.driver.Bookmark;
import org.neo4j.driver.QueryConfig;
import org.neo4j.driver.Record;
import org.neo4j.driver.SessionConfig;
import org.neo4j.driver.TransactionConfig;

/** Connections, bookmarks and results. */
class SessionScenarios extends Scenarios {
    static void add(Map<String, Work> all) {
        all.put("connect", SessionScenarios::connect);
        all.put("bookmarks", SessionScenarios::bookmarks);
        all.put("system", SessionScenarios::system);
        all.put("rows-100000", SessionScenarios::rows);
        all.put("interleaved", SessionScenarios::interleaved);
        all.put("metadata", SessionScenarios::metadata);
        all.put("unconsumed", SessionScenarios::unconsumed);
        all.put("explain", SessionScenarios::explain);
    }

    static void connect() {
        driver.verifyConnectivity();
        try (var session = driver.session()) { // a database need not be named
            var result = session.run("RETURN 1");
            same(result.single().get(0).asLong(), 1L);
            var agent = result.consume().server().agent();
            check(agent.startsWith("Neo4j/"), agent);
        }
    }

    /** Creates a node, after so many others. */
    static Set<Bookmark> create(Set<Bookmark> after, long seen) {
        var settings = SessionConfig.builder().withDatabase(database).withBookmarks(after);
        try (var session = driver.session(settings.build())) {
            same(session.run("MATCH (n:Marked) RETURN count(n)").single().get(0).asLong(), seen);
            session.run("CREATE (:Marked)").consume();
            return session.lastBookmarks();
        }
    }

    static void bookmarks() {
        var first = create(Set.of(), 0);
        var second = create(first, 1);
        check(!first.isEmpty() && !first.equals(second), second);
        var both = new java.util.HashSet<>(first);
        both.addAll(second);
        create(both, 2);
        session(SessionConfig.builder().withBookmarks(Bookmark.from("no bookmark")),
                session -> fails("InvalidBookmark", () -> session.run("RETURN 1").consume()));
    }

    static List<Record> ask(String text) {
        var system = QueryConfig.builder().withDatabase("system").build();
        return driver.executableQuery(text).withConfig(system).execute().records();
    }

    static void system() {
        var names = ask("SHOW DATABASES").stream().map(row -> row.get("name").asString()).toList();
        check(names.containsAll(List.of(database, "system")), names);
        var got = ask("CALL dbms.components()").get(0);
        same(got.get("name").asString(), "Neo4j Kernel");
        check(got.get("versions").get(0).asString().startsWith("5."), got);
    }

    static void rows() {
        session(SessionConfig.builder().withFetchSize(1000), session -> {
            var result = session.run("UNWIND range(1, 100000) AS x RETURN x, 'row ' + x AS text, [x, x] AS list");
            long rows = 0, total = 0;
            while (result.hasNext()) {
                rows++;
                total += result.next().get("x").asLong();
            }
            same(List.of(rows, total), List.of(100_000L, 5_000_050_000L));
        });
        session(SessionConfig.builder().withFetchSize(1),
                session -> same(session.run("UNWIND range(1, 10000) AS x RETURN x").stream().count(), 10_000L));
    }

    static void interleaved() {
        session(SessionConfig.builder().withFetchSize(2), session -> {
            try (var tx = session.beginTransaction()) {
                var first = tx.run("UNWIND range(1, 100) AS x RETURN x");
                var second = tx.run("UNWIND range(101, 200) AS x RETURN x");
                for (var n = 1L; n <= 100; n++) {
                    same(List.of(first.next().get(0).asLong(), second.next().get(0).asLong()), List.of(n, n + 100));
                }
                var outer = tx.run("UNWIND range(1, 5) AS x RETURN x");
                while (outer.hasNext()) tx.run("CREATE (:Nested {n: $n})", Map.of("n", outer.next().get("x"))).consume();
                tx.commit();
            }
        });
        same(count("Nested"), 5L);
    }

    static void metadata() {
        Map<String, Object> sent = Map.of("app", "scenarios", "step", 1L);
        var settings = TransactionConfig.builder().withMetadata(sent).build();
        session(session -> {
            try (var tx = session.beginTransaction(settings)) {
                same(tx.run("CALL tx.getMetaData() YIELD metadata RETURN metadata").single().get(0).asMap(), sent);
                tx.commit();
            }
            same(session.run("CALL tx.getMetaData()", settings).single().get(0).asMap(), sent);
        });
    }

    static void unconsumed() {
        var many = "UNWIND range(1, 20000) AS x RETURN x";
        session(SessionConfig.builder().withFetchSize(10), session -> {
            same(session.run(many).next().get("x").asLong(), 1L);
            same(session.run("RETURN 1").single().get(0).asLong(), 1L);
            session.run(many);
        });
        session(SessionConfig.builder().withFetchSize(10), session -> {
            try (var tx = session.beginTransaction()) {
                tx.run(many);
                tx.run("CREATE (:Unconsumed)");
                tx.commit();
            }
        });
        same(count("Unconsumed"), 1L);
    }

    static void explain() {
        var plan = execute("EXPLAIN MATCH (n:Explained) RETURN n", Map.of()).summary().plan();
        check(plan != null && !plan.operatorType().isEmpty(), plan);
        query("EXPLAIN CREATE (:Explained)");
        same(count("Explained"), 0L);
    }
}
