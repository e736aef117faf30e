import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.neo4j.driver.Values;
import org.neo4j.driver.types.Path;

/** What goes there and back: values, nodes, relationships and paths. */
class ValueScenarios extends Scenarios {
    static final LocalDateTime MOMENT = LocalDateTime.of(2024, 7, 2, 3, 4, 5, 678_000_009);
    static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");

    static void add(Map<String, Work> all) {
        all.put("values-scalar", ValueScenarios::scalars);
        all.put("values-integer-64", ValueScenarios::integers);
        all.put("values-nested", ValueScenarios::nested);
        all.put("values-temporal", ValueScenarios::temporals);
        all.put("values-spatial", ValueScenarios::spatials);
        all.put("values-stored", ValueScenarios::stored);
        all.put("node", ValueScenarios::node);
        all.put("relationship", ValueScenarios::relationship);
        all.put("path", ValueScenarios::path);
        all.put("element-ids", ValueScenarios::elementIds);
    }

    /** Alone, in a list, and in a map. */
    static void echo(Object value) {
        same(one("RETURN $v", "v", value).asObject(), value);
        var both = one("RETURN [$v, {k: $v}]", "v", value);
        same(both.get(0).asObject(), value);
        same(both.get(1).get("k").asObject(), value);
    }

    static void scalars() {
        for (var value : Arrays.asList(null, true, false, 0L, -1L, 1.5, -0.0, Double.POSITIVE_INFINITY, Double.NaN,
                "", "ä€𝄞\n\"\\", "x".repeat(70_000))) {
            echo(value);
        }
        for (var value : List.of(new byte[0], new byte[] {0, 1, -1}, new byte[70_000])) {
            same(one("RETURN $v", "v", value).asByteArray(), value);
        }
    }

    static void integers() {
        for (var bits : List.of(4, 7, 8, 15, 16, 31, 32, 53, 63)) {
            var most = bits == 63 ? Long.MAX_VALUE : (1L << bits) - 1;
            for (var value : List.of(most, -most, -most - 1)) echo(value);
        }
    }

    static void nested() {
        echo(List.of());
        echo(Map.of());
        echo(List.of(1L, List.of(2L, List.of(3.5, Arrays.asList("x", null))), Map.of("a", Map.of("b", List.of(true)))));
        var list = new ArrayList<Long>();
        var map = new HashMap<String, Object>();
        for (var n = 0L; n < 1000; n++) {
            list.add(n);
            map.put("k" + n % 300, n);
        }
        echo(Map.of("list", list, "map", map));
    }

    static void temporals() {
        for (var value : List.of(
                LocalDate.of(2024, 2, 29), LocalDate.of(1, 1, 1), LocalDate.of(9999, 12, 31), LocalTime.of(1, 2, 3, 4),
                OffsetTime.of(23, 59, 59, 999_999_999, ZoneOffset.ofHoursMinutes(-1, -30)),
                MOMENT, LocalDateTime.of(1900, 1, 1, 0, 0), MOMENT.atZone(ZoneOffset.ofHoursMinutes(1, 30)),
                MOMENT.atZone(BERLIN), LocalDateTime.of(2024, 1, 2, 3, 4, 5, 6).atZone(BERLIN),
                Values.isoDuration(14, -3, 70, 5).asIsoDuration(),
                Values.isoDuration(0, 0, -1, 999_999_999).asIsoDuration(),
                Values.isoDuration(0, 0, 0, 0).asIsoDuration())) {
            echo(value);
        }
        var row = execute("RETURN $v.timezone, $v.year", Map.of("v", MOMENT.atZone(BERLIN))).records().get(0);
        same(row.values().stream().map(v -> v.asObject()).toList(), List.of("Europe/Berlin", 2024L));
    }

    static void spatials() {
        for (var value : List.of(Values.point(4326, 1, 2), Values.point(4979, 1, 2, 3),
                Values.point(7203, -1.5, 2), Values.point(9157, 1, 2, 3))) {
            echo(value.asPoint());
        }
        same(one("RETURN $v.srid", "v", Values.point(4326, 1, 2)).asInt(), 4326);
    }

    static void stored() {
        Map<String, Object> properties = new HashMap<>(Map.of(
                "int", Long.MAX_VALUE, "float", 0.1, "text", "ä", "yes", true, "date", LocalDate.of(2024, 2, 29),
                "time", OffsetTime.of(1, 2, 3, 4, ZoneOffset.ofHours(1)), "local", MOMENT,
                "zoned", ZonedDateTime.of(MOMENT, BERLIN), "point", Values.point(4326, 1, 2).asPoint()));
        properties.put("duration", Values.isoDuration(1, 2, 3, 0).asIsoDuration());
        properties.put("ints", List.of(1L, 2L));
        properties.put("points", List.of(Values.point(7203, 3, 4).asPoint()));
        execute("CREATE (n:Stored) SET n = $properties", Map.of("properties", properties));
        same(one("MATCH (n:Stored) RETURN n").asNode().asMap(), properties);
        var bytes = new byte[] {0, -1};
        execute("CREATE (n:StoredBytes {b: $b})", Map.of("b", bytes));
        same(one("MATCH (n:StoredBytes) RETURN n.b").asByteArray(), bytes);
    }

    static void node() {
        var got = one("CREATE (n:Node:Second {name: 'Ada', born: 1815}) RETURN n").asNode();
        var labels = new HashSet<String>();
        got.labels().forEach(labels::add);
        same(labels, java.util.Set.of("Node", "Second"));
        same(got.asMap(), Map.of("name", "Ada", "born", 1815L));
        same(one("MATCH (n:Node) RETURN n").asNode().elementId(), got.elementId());
    }

    static void relationship() {
        var row = query("CREATE (:Rel {n: 1})-[r:KNOWS {since: 2020}]->(:Rel {n: 2}) RETURN r, startNode(r), endNode(r)").get(0);
        var r = row.get(0).asRelationship();
        same(List.of(r.type(), r.asMap()), List.of("KNOWS", Map.of("since", 2020L)));
        same(List.of(r.startNodeElementId(), r.endNodeElementId()),
                List.of(row.get(1).asNode().elementId(), row.get(2).asNode().elementId()));
    }

    static void path() {
        query("CREATE (:Path {n: 1})-[:NEXT {n: 1}]->(:Path {n: 2})<-[:PREVIOUS {n: 2}]-(:Path {n: 3})");
        goesOver(one("MATCH p = (:Path {n: 1})-[:NEXT]->()<-[:PREVIOUS]-() RETURN p").asPath(), 1L, 2L, 3L);
        goesOver(one("MATCH p = (:Path {n: 3})-[:PREVIOUS]->()<-[:NEXT]-() RETURN p").asPath(), 3L, 2L, 1L);
        same(one("MATCH p = (n:Path {n: 1}) RETURN p").asPath().length(), 0);
        var twice = one("MATCH (a:Path {n: 1}) CREATE p = (a)-[:LOOP]->(a) RETURN p").asPath();
        same(twice.start().elementId(), twice.end().elementId());
    }

    /** The nodes are in this order, the relationships in the directions they were made in. */
    static void goesOver(Path got, Long... numbers) {
        var ids = new HashMap<Long, String>();
        got.nodes().forEach(each -> ids.put(each.get("n").asLong(), each.elementId()));
        same(StreamSupport.stream(got.nodes().spliterator(), false).map(n -> n.get("n").asLong()).toList(), List.of(numbers));
        same(got.length(), 2);
        for (var each : got.relationships()) {
            same(each.startNodeElementId(), ids.get(each.hasType("NEXT") ? 1L : 3L));
            same(each.endNodeElementId(), ids.get(2L));
        }
    }

    static void elementIds() {
        var row = query("CREATE (a:Ids)-[r:OF]->(b:Ids) RETURN a, r, b, elementId(a), elementId(r)").get(0);
        var a = row.get(0).asNode().elementId();
        same(List.of(a, row.get(1).asRelationship().elementId()), List.of(row.get(3).asString(), row.get(4).asString()));
        check(!a.equals(row.get(2).asNode().elementId()), a);
        same(one("MATCH (n) WHERE elementId(n) = $id RETURN n", "id", a).asNode().elementId(), a);
    }
}
