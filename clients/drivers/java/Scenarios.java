import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.neo4j.driver.AuthTokens;
import org.neo4j.driver.Config;
import org.neo4j.driver.Driver;
import org.neo4j.driver.EagerResult;
import org.neo4j.driver.GraphDatabase;
import org.neo4j.driver.QueryConfig;
import org.neo4j.driver.Record;
import org.neo4j.driver.Session;
import org.neo4j.driver.SessionConfig;
import org.neo4j.driver.Value;
import org.neo4j.driver.exceptions.Neo4jException;

/** Scenarios of Neo4j's Java driver: Scenarios URI DATABASE [NAME…]; see ../scenarios.txt. */
public class Scenarios {
    /** One scenario: it throws what failed. */
    interface Work {
        void run() throws Exception;
    }

    static final Map<String, Work> ALL = new LinkedHashMap<>();
    static String uri;
    static String database;
    static Driver driver;

    public static void main(String[] arguments) {
        uri = arguments[0];
        database = arguments[1];
        var only = Arrays.asList(arguments).subList(2, arguments.length);
        driver = connected();
        SessionScenarios.add(ALL);
        ValueScenarios.add(ALL);
        TransactionScenarios.add(ALL);
        var failed = false;
        for (var each : ALL.entrySet()) {
            if (!only.isEmpty() && !only.contains(each.getKey())) continue;
            var began = System.nanoTime();
            try {
                each.getValue().run();
                var seconds = (System.nanoTime() - began) / 1e9;
                System.out.printf(Locale.ROOT, "ok %s (%.1f s)%n", each.getKey(), seconds);
            } catch (Exception | AssertionError error) {
                failed = true;
                System.out.printf("FAILED %s: %s%n", each.getKey(), error);
                if (!only.isEmpty()) error.printStackTrace();
            }
        }
        driver.close();
        System.exit(failed ? 1 : 0);
    }

    /** 32 writers that return what they wrote need some tries each, and the driver sleeps seconds between them. */
    static Driver connected() {
        var settings = Config.builder()
                .withMaxConnectionPoolSize(100)
                .withMaxTransactionRetryTime(2, TimeUnit.MINUTES)
                .build();
        return GraphDatabase.driver(uri, AuthTokens.basic("neo4j", "ignored"), settings);
    }

    static EagerResult execute(String text, Map<String, Object> parameters) {
        return driver.executableQuery(text)
                .withParameters(parameters)
                .withConfig(QueryConfig.builder().withDatabase(database).build())
                .execute();
    }

    static List<Record> query(String text) {
        return execute(text, Map.of()).records();
    }

    static Value one(String text) {
        return query(text).get(0).get(0);
    }

    static Value one(String text, String name, Object parameter) {
        var parameters = new java.util.HashMap<String, Object>();
        parameters.put(name, parameter);
        return execute(text, parameters).records().get(0).get(0);
    }

    static long count(String label) {
        return one("MATCH (n:" + label + ") RETURN count(n)").asLong();
    }

    static void session(Consumer<Session> work) {
        session(SessionConfig.builder(), work);
    }

    static void session(SessionConfig.Builder settings, Consumer<Session> work) {
        try (var session = driver.session(settings.withDatabase(database).build())) {
            work.accept(session);
        }
    }

    static void same(Object got, Object wanted) {
        if (!Objects.deepEquals(got, wanted)) throw new AssertionError(got + " is not " + wanted);
    }

    static void check(boolean holds, Object about) {
        if (!holds) throw new AssertionError(about);
    }

    /** The work fails, with a code that has the name at its end. */
    static void fails(String name, Runnable work) {
        try {
            work.run();
        } catch (Neo4jException error) {
            var last = error.code().substring(error.code().lastIndexOf('.') + 1);
            // Of time limits, newer servers say who set them.
            check(last.equals(name) || last.equals(name + "ClientConfiguration"), error.code() + ": " + error.getMessage());
            return;
        }
        throw new AssertionError("no error, and not " + name);
    }
}
