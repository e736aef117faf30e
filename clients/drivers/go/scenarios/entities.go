package main

import (
	"slices"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"
)

var entities = []scenario{
	{"node", node},
	{"relationship", relationship},
	{"path", path},
	{"element-ids", elementIDs},
}

func node() {
	got := one("CREATE (n:Node:Second {name: 'Ada', born: 1815}) RETURN n", nil).(neo4j.Node)
	slices.Sort(got.Labels)
	same(got.Labels, []string{"Node", "Second"})
	same(got.Props, values{"name": "Ada", "born": int64(1815)})
	same(one("MATCH (n:Node) RETURN n", nil).(neo4j.Node).ElementId, got.ElementId)
}

func relationship() {
	row := query("CREATE (:Rel {n: 1})-[r:KNOWS {since: 2020}]->(:Rel {n: 2}) RETURN r, startNode(r), endNode(r)", nil)[0]
	r, a, b := row.Values[0].(neo4j.Relationship), row.Values[1].(neo4j.Node), row.Values[2].(neo4j.Node)
	same([]any{r.Type, r.Props}, []any{"KNOWS", values{"since": int64(2020)}})
	same([]string{r.StartElementId, r.EndElementId}, []string{a.ElementId, b.ElementId})
}

func path() {
	query("CREATE (:Path {n: 1})-[:NEXT {n: 1}]->(:Path {n: 2})<-[:PREVIOUS {n: 2}]-(:Path {n: 3})", nil)
	there := one("MATCH p = (:Path {n: 1})-[:NEXT]->()<-[:PREVIOUS]-() RETURN p", nil).(neo4j.Path)
	back := one("MATCH p = (:Path {n: 3})-[:PREVIOUS]->()<-[:NEXT]-() RETURN p", nil).(neo4j.Path)
	goesOver(there, 1, 2, 3)
	goesOver(back, 3, 2, 1)
	same(len(one("MATCH p = (n:Path {n: 1}) RETURN p", nil).(neo4j.Path).Relationships), 0)
	twice := one("MATCH (a:Path {n: 1}) CREATE p = (a)-[:LOOP]->(a) RETURN p", nil).(neo4j.Path)
	same(twice.Relationships[0].StartElementId, twice.Relationships[0].EndElementId)
}

// goesOver demands nodes in this order, and relationships in the directions they were made in.
func goesOver(got neo4j.Path, numbers ...int64) {
	ids, seen := map[int64]string{}, []int64{}
	for _, each := range got.Nodes {
		number := each.Props["n"].(int64)
		ids[number], seen = each.ElementId, append(seen, number)
	}
	same(seen, numbers)
	same(len(got.Relationships), 2)
	for _, each := range got.Relationships {
		start := map[string]int64{"NEXT": 1, "PREVIOUS": 3}[each.Type]
		same([]string{each.StartElementId, each.EndElementId}, []string{ids[start], ids[2]})
	}
}

func elementIDs() {
	row := query("CREATE (a:Ids)-[r:OF]->(b:Ids) RETURN a, r, b, elementId(a), elementId(r)", nil)[0].Values
	a, r, b := row[0].(neo4j.Node), row[1].(neo4j.Relationship), row[2].(neo4j.Node)
	same([]any{a.ElementId, r.ElementId}, row[3:])
	check(a.ElementId != b.ElementId, "two nodes have the id %s", a.ElementId)
	found := one("MATCH (n) WHERE elementId(n) = $id RETURN n", values{"id": a.ElementId})
	same(found.(neo4j.Node).ElementId, a.ElementId)
}
