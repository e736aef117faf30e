// The first steps of @neo4j/graphql: try_graphql.mjs URI DATABASE.
import { deepStrictEqual } from "node:assert";
import neo4j from "neo4j-driver";
import { Neo4jGraphQL } from "@neo4j/graphql";
import { graphql } from "graphql";

const [uri, database] = process.argv.slice(2);
const typeDefs = `#graphql
  type Product @node {
    name: String!
    price: Float
    category: [Category!]! @relationship(type: "PART_OF", direction: OUT)
  }
  type Category @node {
    name: String!
    products: [Product!]! @relationship(type: "PART_OF", direction: IN)
  }
`;
const driver = neo4j.driver(uri);
const library = new Neo4jGraphQL({ typeDefs, driver });
const schema = await library.getSchema();
await library.checkNeo4jCompat({ driver, sessionConfig: { database } });
const contextValue = { driver, sessionConfig: { database } };
async function ask(source, expected) {
  const answer = await graphql({ schema, source, contextValue });
  deepStrictEqual(JSON.parse(JSON.stringify(answer)), { data: expected });
}

await ask(
  `mutation { createProducts(input: [
     { name: "Cup", price: 9.5, category: { create: [{ node: { name: "Kitchen" } }] } },
     { name: "Pen", price: 2 }
   ]) { info { nodesCreated relationshipsCreated } products { name category { name } } } }`,
  {
    createProducts: {
      info: { nodesCreated: 3, relationshipsCreated: 1 },
      products: [{ name: "Cup", category: [{ name: "Kitchen" }] }, { name: "Pen", category: [] }],
    },
  },
);
await ask(
  `{ productsConnection(first: 1, sort: [{ price: DESC }]) {
       totalCount pageInfo { hasNextPage } edges { node { name } } aggregate { node { price { average min } } } } }`,
  {
    productsConnection: {
      totalCount: 2, pageInfo: { hasNextPage: true }, edges: [{ node: { name: "Cup" } }],
      aggregate: { node: { price: { average: 5.75, min: 2 } } },
    },
  },
);
const pen = (update) =>
  `mutation { updateProducts(where: { name: { eq: "Pen" } }, update: ${update}) { products { price category { name } } } }`;
const kitchen = `where: { node: { name: { eq: "Kitchen" } } }`;
await ask(pen(`{ price: { set: 3.5 }, category: [{ connect: [{ ${kitchen} }] }] }`), {
  updateProducts: { products: [{ price: 3.5, category: [{ name: "Kitchen" }] }] },
});
await ask(`{ categories(where: { products: { some: { price: { lt: 4 } } } }) { products(sort: [{ name: ASC }]) { name } } }`, {
  categories: [{ products: [{ name: "Cup" }, { name: "Pen" }] }],
});
await ask(pen(`{ category: [{ disconnect: [{ ${kitchen} }] }] }`), {
  updateProducts: { products: [{ price: 3.5, category: [] }] },
});
await ask(
  `mutation { deleteProducts(where: { name: { eq: "Cup" } }, delete: { category: [{ ${kitchen} }] }) { nodesDeleted relationshipsDeleted } }`,
  { deleteProducts: { nodesDeleted: 2, relationshipsDeleted: 1 } },
);
await ask(`{ products { name } categories { name } }`, { products: [{ name: "Pen" }], categories: [] });
await driver.close();
console.log("graphql: all steps");
