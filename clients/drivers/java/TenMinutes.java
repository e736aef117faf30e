import java.util.Map;
import org.neo4j.driver.GraphDatabase;
import org.neo4j.driver.QueryConfig;
import org.neo4j.driver.SessionConfig;

public class TenMinutes {
    public static void main(String[] arguments) {
        var uri = arguments.length > 0 ? arguments[0] : "bolt://localhost:4000";
        var database = QueryConfig.builder().withDatabase("neo4j").build();
        try (var driver = GraphDatabase.driver(uri)) {
            driver.executableQuery("""
                    MERGE (a:Person {name: $name}) MERGE (b:Person {name: 'Bob'})
                    MERGE (a)-[:KNOWS {since: date('2020-01-02')}]->(b)""")
                    .withParameters(Map.of("name", "Ada")).withConfig(database).execute();
            var found = driver.executableQuery(
                    "MATCH (:Person {name: $name})-[k:KNOWS]->(p) RETURN p.name AS friend, k.since AS since")
                    .withParameters(Map.of("name", "Ada")).withConfig(database).execute();
            for (var row : found.records()) {
                System.out.println(row.get("friend").asString() + " since " + row.get("since").asLocalDate());
            }
            try (var session = driver.session(SessionConfig.forDatabase("neo4j"))) {
                var people = session.executeWrite(tx -> { // executed again if another transaction overtakes it
                    tx.run("MATCH (p:Person) SET p.seen = coalesce(p.seen, 0) + 1");
                    return tx.run("MATCH (p:Person) RETURN count(p) AS people").single().get("people").asLong();
                });
                System.out.println(people + " people");
            }
        }
    }
}
