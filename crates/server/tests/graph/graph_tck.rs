//! Every tenth scenario of the openCypher Technology Compatibility Kit over HTTP and over Bolt: the
//! face renders what the language returns. The language's own tests run all of them; the readers of
//! the kit are theirs. `WELLSPRING_TEST_TCK_EVERY=1` runs all of them here, too.

#[path = "../../../cypher/tests/tck/gherkin.rs"]
mod gherkin;
#[path = "../../../cypher/tests/tck/kit.rs"]
mod kit;
#[path = "../../../cypher/tests/tck/step.rs"]
mod step;
#[path = "../../../cypher/tests/tck/value.rs"]
mod value;

use crate::bolt_client::BoltClient;
use crate::bolt_content;
use crate::graph_client::*;
use crate::server::Server;
use gherkin::Scenario;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use step::{Kind, Phase, kind};
use value::{ListOrder, TckNode, TckRelationship, TckValue, parse};

/// One in this many is run.
const EVERY: usize = 10;

/// How statements are sent.
enum Wire<'a> {
    Http(&'a mut GraphClient),
    Bolt(&'a mut BoltClient),
}

impl Wire<'_> {
    /// The answer to a statement, in the form of the transaction API.
    fn ask(&mut self, statement: &str, parameters: &Map<String, Value>) -> Value {
        match self {
            Wire::Http(client) => {
                let body = json!({"statements": [{"statement": statement, "parameters": parameters,
                    "resultDataContents": ["row", "graph"], "includeStats": true}]});
                client.ask("POST", "tx/commit", &body).unwrap().expect(200)
            }
            Wire::Bolt(client) => {
                bolt_content::content(client.run(statement, parameters.clone().into()))
            }
        }
    }

    /// Executes a statement that has no fault.
    fn run(&mut self, statement: &str, parameters: &Map<String, Value>) {
        let content = self.ask(statement, parameters);
        assert_eq!(code(&content), None, "{statement}: {content}");
    }
}

/// A scenario in progress.
struct World<'a> {
    wire: Wire<'a>,
    parameters: Map<String, Value>,
    /// The result of the last statement under test.
    content: Value,
    graphs: &'a Path,
}

/// A value as the face renders it: for entities their properties, for a path those of its parts.
fn rendered(value: &TckValue) -> TckValue {
    let properties = |of: &BTreeMap<String, TckValue>| {
        TckValue::Map(of.iter().map(|(key, value)| (key.clone(), rendered(value))).collect())
    };
    match value {
        TckValue::Float(float) if float.is_nan() => TckValue::String("NaN".to_owned()),
        TckValue::List(items) => TckValue::List(items.iter().map(rendered).collect()),
        TckValue::Map(entries) => properties(entries),
        TckValue::Node(TckNode { properties: of, .. })
        | TckValue::Relationship(TckRelationship { properties: of, .. }) => properties(of),
        TckValue::Path(start, steps) => {
            let mut parts = vec![properties(&start.properties)];
            for (_, relationship, node) in steps {
                parts.extend([properties(&relationship.properties), properties(&node.properties)]);
            }
            TckValue::List(parts)
        }
        plain => plain.clone(),
    }
}

/// A value of an answer.
fn told(value: &Value) -> TckValue {
    match value {
        Value::Null => TckValue::Null,
        Value::Bool(truth) => TckValue::Boolean(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => TckValue::Integer(integer),
            None => TckValue::Float(number.as_f64().unwrap()),
        },
        Value::String(text) => TckValue::String(text.clone()),
        Value::Array(items) => TckValue::List(items.iter().map(told).collect()),
        Value::Object(entries) => {
            TckValue::Map(entries.iter().map(|(key, value)| (key.clone(), told(value))).collect())
        }
    }
}

/// A parameter's value.
fn parameter(value: &TckValue) -> Value {
    match value {
        TckValue::Boolean(truth) => json!(truth),
        TckValue::Integer(integer) => json!(integer),
        TckValue::Float(float) => json!(float),
        TckValue::String(text) => json!(text),
        TckValue::List(items) => items.iter().map(parameter).collect(),
        TckValue::Map(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), parameter(value)))
            .collect::<Map<_, _>>()
            .into(),
        _ => Value::Null,
    }
}

/// The kinds of the entities in a value, as `meta` lists them in order; nulls are skipped.
fn kinds(value: &TckValue, out: &mut Vec<&'static str>) {
    match value {
        TckValue::Node(_) => out.push("node"),
        TckValue::Relationship(_) => out.push("relationship"),
        TckValue::Path(_, steps) => {
            out.push("node");
            steps.iter().for_each(|_| out.extend(["relationship", "node"]));
        }
        TckValue::List(items) => items.iter().for_each(|item| kinds(item, out)),
        TckValue::Map(entries) => entries.values().for_each(|value| kinds(value, out)),
        _ => {}
    }
}

fn kinds_told(meta: &Value, out: &mut Vec<String>) {
    match meta {
        Value::Array(items) => items.iter().for_each(|item| kinds_told(item, out)),
        Value::Object(entity) => out.push(entity["type"].as_str().unwrap().to_owned()),
        _ => {}
    }
}

/// The nodes of a value as the kit writes them, including labels.
fn nodes(value: &TckValue, out: &mut BTreeSet<String>) {
    let mut add = |node: &TckNode| {
        let labels = node.labels.clone();
        let TckValue::Map(properties) = rendered(&TckValue::Node(node.clone())) else { return };
        out.insert(TckValue::Node(TckNode { labels, properties }).text(ListOrder::Regarded));
    };
    match value {
        TckValue::Node(node) => add(node),
        TckValue::Path(start, steps) => {
            add(start);
            steps.iter().for_each(|(_, _, node)| add(node));
        }
        TckValue::List(items) => items.iter().for_each(|item| nodes(item, out)),
        TckValue::Map(entries) => entries.values().for_each(|value| nodes(value, out)),
        _ => {}
    }
}

/// The same for the form `graph`.
fn nodes_told(data: &[Value]) -> BTreeSet<String> {
    let all = data.iter().flat_map(|row| row["graph"]["nodes"].as_array().unwrap());
    let text = |node: &Value| {
        let labels = node["labels"].as_array().unwrap().iter();
        let mut labels: Vec<String> =
            labels.map(|label| label.as_str().unwrap().to_owned()).collect();
        labels.sort();
        let TckValue::Map(properties) = told(&node["properties"]) else { panic!("{node}") };
        TckValue::Node(TckNode { labels, properties }).text(ListOrder::Regarded)
    };
    all.map(text).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(came: T, expected: T) -> Result<(), String> {
    if came == expected { Ok(()) } else { Err(format!("expected {expected:?}, came {came:?}")) }
}

impl World<'_> {
    fn take(&mut self, kind: Kind<'_>) -> Result<(), String> {
        match kind {
            Kind::EmptyGraph => self.wire.run("MATCH (n) DETACH DELETE n", &Map::new()),
            Kind::NamedGraph(name) => {
                let file = self.graphs.join(name).join(format!("{name}.cypher"));
                let statement = std::fs::read_to_string(file).unwrap();
                self.wire.run(statement.trim().trim_end_matches(';'), &Map::new());
            }
            Kind::Prepare(statement) => {
                self.wire.run(statement, &self.parameters);
            }
            Kind::Parameters(rows) => {
                for row in rows {
                    self.parameters.insert(row[0].clone(), parameter(&parse(&row[1])?));
                }
            }
            Kind::Procedure(signature, rows) => {
                return Err(format!("{signature}, {} rows", rows.len()));
            }
            Kind::Execute(statement) => {
                self.content = self.wire.ask(statement, &self.parameters);
            }
            Kind::Rows { table, ordered, lists } => self.rows(table, ordered, lists)?,
            Kind::NoRows => same(self.result()?["data"].as_array().unwrap().len(), 0)?,
            Kind::SideEffects(table) => self.effects(table)?,
            Kind::Failure { kind, phase, detail } => {
                self.failure(kind, phase).map_err(|why| format!("{detail}: {why}"))?;
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<&Value, String> {
        match code(&self.content) {
            None => Ok(&self.content["results"][0]),
            Some(code) => Err(format!("{code}: {}", self.content["errors"][0]["message"])),
        }
    }

    fn rows(&self, table: &[Vec<String>], ordered: bool, lists: ListOrder) -> Result<(), String> {
        let result = self.result()?;
        let (header, expected) = table.split_first().expect("a header");
        same(&result["columns"], &json!(header))?;
        let data = result["data"].as_array().unwrap();
        let line = |texts: Vec<String>, kinds: Vec<String>| match lists {
            ListOrder::Regarded => format!("{} {kinds:?}", texts.join(" | ")),
            ListOrder::Ignored => texts.join(" | "),
        };
        let (mut wanted, mut wanted_nodes) = (Vec::new(), BTreeSet::new());
        for row in expected {
            let row = row.iter().map(|cell| parse(cell)).collect::<Result<Vec<_>, _>>()?;
            let mut of_row = Vec::new();
            row.iter().for_each(|value| kinds(value, &mut of_row));
            row.iter().for_each(|value| nodes(value, &mut wanted_nodes));
            let texts = row.iter().map(|value| rendered(value).text(lists)).collect();
            wanted.push(line(texts, of_row.into_iter().map(str::to_owned).collect()));
        }
        let came = data.iter().map(|row| {
            let mut of_row = Vec::new();
            kinds_told(&row["meta"], &mut of_row);
            let values = row["row"].as_array().unwrap().iter();
            line(values.map(|value| told(value).text(lists)).collect(), of_row)
        });
        let mut came: Vec<String> = came.collect();
        if !ordered {
            wanted.sort();
            came.sort();
        }
        same(came, wanted)?;
        let nodes_told = nodes_told(data);
        let missing: Vec<_> = wanted_nodes.difference(&nodes_told).collect();
        // Within lists whose order is ignored the kit may write a different order.
        if missing.is_empty() || lists == ListOrder::Ignored {
            return Ok(());
        }
        Err(format!("not in graph: {missing:?}"))
    }

    /// Nodes and relationships according to the statistics; labels and properties are counted
    /// differently there.
    fn effects(&self, table: &[Vec<String>]) -> Result<(), String> {
        let stats = &self.result()?["stats"];
        for (name, made, gone) in [
            ("nodes", "nodes_created", "nodes_deleted"),
            ("relationships", "relationships_created", "relationship_deleted"),
        ] {
            let expected = |sign: char| {
                let row = table.iter().find(|row| row[0] == format!("{sign}{name}"));
                row.map_or(0, |row| row[1].parse::<i64>().unwrap())
            };
            let count = |name: &str| stats[name].as_i64().unwrap();
            let came = count(made) - count(gone);
            same(came, expected('+') - expected('-')).map_err(|why| format!("{name}: {why}"))?;
        }
        let has_updates = stats["contains_updates"].as_bool().unwrap();
        if has_updates || table.is_empty() { Ok(()) } else { Err(format!("no updates? {stats}")) }
    }

    fn failure(&self, kind: &str, phase: Option<Phase>) -> Result<(), String> {
        let Some(code) = code(&self.content) else { return Err(format!("no {kind} came")) };
        let is_compiled = kind == "SyntaxError" && phase == Some(Phase::Compile);
        let fits = if is_compiled {
            code == "Neo.ClientError.Statement.SyntaxError"
        } else {
            code.starts_with("Neo.ClientError.")
        };
        if fits { Ok(()) } else { Err(format!("{kind} as {code}")) }
    }
}

fn run(scenario: &Scenario, mut wire: Wire<'_>, graphs: &Path) -> Result<(), String> {
    wire.run("MATCH (n) DETACH DELETE n", &Map::new());
    let mut world = World { wire, parameters: Map::new(), content: Value::Null, graphs };
    scenario.steps.iter().try_for_each(|step| world.take(kind(step)?))
}

/// The kit without what calls its own procedures, which the library's tests have; one in so many
/// is run, from this one on.
fn check_kit(first: usize, mut run: impl FnMut(&Scenario, &Path) -> Result<(), String>) {
    gherkin::check();
    value::check();
    let kit = kit::folder();
    let mut cases = kit::cases(&kit.join("features"));
    let has_procedure = |case: &kit::Case| {
        case.scenario.steps.iter().any(|step| matches!(kind(step), Ok(Kind::Procedure(..))))
    };
    cases.retain(|case| !has_procedure(case));
    let every = std::env::var("WELLSPRING_TEST_TCK_EVERY").ok();
    let every = every.map_or(EVERY, |every| every.parse().expect("a number"));
    let (mut passed, mut failures, mut folders) = (0, Vec::new(), BTreeSet::new());
    for case in cases.iter().skip(first % every).step_by(every) {
        match run(&case.scenario, &kit.join("graphs")) {
            Ok(()) => passed += 1,
            Err(why) => failures.push(format!("{}\n    {why}", case.name)),
        }
        folders.insert(&case.folder);
    }
    println!("{passed} of {} passed, from {} folders", passed + failures.len(), folders.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(passed > 350, "{passed}");
}

#[test]
fn a_tenth_of_the_kit_passes_over_http() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address);
    check_kit(0, |scenario, graphs| run(scenario, Wire::Http(&mut client), graphs));
}

#[test]
fn another_tenth_of_the_kit_passes_over_bolt() {
    let server = Server::start();
    let mut clients = [(5, 0), (5, 4), (5, 8)].map(|of| BoltClient::ready(server.address, of));
    let mut next = 0;
    check_kit(5, |scenario, graphs| {
        next = (next + 1) % clients.len();
        run(scenario, Wire::Bolt(&mut clients[next]), graphs)
    });
}
