"""What graphrag does without a model: indexes, searches, a graph of knowledge: try_graphrag.py URI DATABASE."""
import asyncio
import sys

from neo4j import GraphDatabase
from neo4j_graphrag.embeddings.base import Embedder
from neo4j_graphrag.experimental.components.kg_writer import Neo4jWriter
from neo4j_graphrag.experimental.components.types import Neo4jGraph, Neo4jNode, Neo4jRelationship
from neo4j_graphrag.indexes import (
    create_fulltext_index, create_vector_index, drop_index_if_exists, upsert_vectors,
)
from neo4j_graphrag.retrievers import HybridCypherRetriever, HybridRetriever, VectorCypherRetriever, VectorRetriever
from neo4j_graphrag.schema import get_schema, get_structured_schema
from neo4j_graphrag.types import EntityType

uri, database = sys.argv[1:]


class Lengths(Embedder):
    """A text is as long as it is."""

    def embed_query(self, text, **_):
        return [float(len(text)), 1.0, 0.5]


with GraphDatabase.driver(uri, auth=("neo4j", "ignored")) as driver:
    of = {"neo4j_database": database}
    create_vector_index(
        driver, "vectors", label="Text", embedding_property="vector", dimensions=3, similarity_fn="cosine", **of)
    create_fulltext_index(driver, "words", label="Text", node_properties=["text"], **of)
    made = driver.execute_query(
        "UNWIND ['one cat', 'two cats and a dog', 'no animal at all'] AS text "
        "CREATE (n:Text {text: text, words: size(split(text, ' '))}) RETURN elementId(n) AS id, text",
        database_=database).records
    vectors = [[float(len(each["text"])), 1.0, 0.5] for each in made]
    upsert_vectors(driver, [each["id"] for each in made], "vector", vectors, entity_type=EntityType.NODE, **of)
    found = VectorRetriever(driver, "vectors", Lengths(), **of).search(query_text="one dog", top_k=1)
    assert "one cat" in found.items[0].content and found.items[0].metadata["score"] > 0.99, found
    found = VectorRetriever(driver, "vectors", Lengths(), **of).search(
        query_text="one dog", top_k=3, filters={"words": {"$gte": 5}})
    assert len(found.items) == 1 and "two cats" in found.items[0].content, found
    tail = "RETURN node.text AS text, score"
    for retriever, top in (
        (VectorCypherRetriever(driver, "vectors", tail, Lengths(), **of), "one cat"),
        (HybridRetriever(driver, "vectors", "words", Lengths(), **of), "one cat"),
        (HybridCypherRetriever(driver, "vectors", "words", tail, Lengths(), **of), "one cat"),
    ):
        found = retriever.search(query_text="one cat", top_k=2)
        assert top in found.items[0].content, (retriever, found)
    ann = Neo4jNode(id="a", label="Person", properties={"name": "Ann"}, embedding_properties={"v": [1.0, 2.0]})
    bob = Neo4jNode(id="b", label="Person", properties={"name": "Bob"})
    knows = Neo4jRelationship(start_node_id="a", end_node_id="b", type="KNOWS", properties={"since": 1})
    written = asyncio.run(Neo4jWriter(driver, **of).run(Neo4jGraph(nodes=[ann, bob], relationships=[knows])))
    assert written.status == "SUCCESS", written
    people = driver.execute_query(
        "MATCH (a:Person)-[r:KNOWS {since: 1}]->(b) RETURN a.name, a.v, b.name", database_=database).records
    assert [each.values() for each in people] == [["Ann", [1.0, 2.0], "Bob"]], people
    assert "Text" in get_schema(driver, is_enhanced=True, database=database)
    structured = get_structured_schema(driver, database=database)
    assert {"property": "words", "type": "INTEGER"} in structured["node_props"]["Text"], structured
    drop_index_if_exists(driver, "vectors", **of)
    print("graphrag:", len(made), "texts")
