"""LangChain's graph: try_langchain.py URI DATABASE."""
import sys

from langchain_core.documents import Document
from langchain_neo4j import Neo4jGraph
from langchain_neo4j.graphs.graph_document import GraphDocument, Node, Relationship

graph = Neo4jGraph(sys.argv[1], "neo4j", "ignored", database=sys.argv[2])
ada, bob = Node(id="Ada", type="Person", properties={"born": 1815}), Node(id="Bob", type="Person")
knows = Relationship(source=ada, target=bob, type="KNOWS", properties={"since": 2020})
document = GraphDocument(nodes=[ada, bob], relationships=[knows], source=Document(page_content="Ada knows Bob."))
graph.add_graph_documents([document], include_source=True, baseEntityLabel=True)
found = graph.query("MATCH (a:Person {id: $id})-[k:KNOWS]->(b) RETURN b.id AS id, k.since AS since", {"id": "Ada"})
assert found == [{"id": "Bob", "since": 2020}], found
graph.refresh_schema()
print(graph.schema)
structure = graph.structured_schema
assert {"start": "Person", "type": "KNOWS", "end": "Person"} in structure["relationships"], structure
assert {"property": "born", "type": "INTEGER"} in structure["node_props"]["Person"], structure
