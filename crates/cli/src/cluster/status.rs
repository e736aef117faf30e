//! `wellspring cluster status`: a table of the nodes and of the logs of the one that was asked.

use super::ask;
use super::document::{ClusterDocument, EngineDocument, LeaderDocument};
use crate::exit::{Failure, say};
use wellspring_host::client::{Client, Request};

/// Where it is asked.
pub(crate) const PATH: &str = "/v1/cluster";

pub(super) fn run(client: &mut Client, json: bool) -> Result<(), Failure> {
    let answer = ask(client, &Request::get(PATH, &[]))?;
    let document = ClusterDocument::read(&answer.body)?;
    if json {
        return say(String::from_utf8_lossy(&answer.body).trim_end());
    }
    say(&lines(&document).join("\n"))
}

/// What is shown to people.
fn lines(document: &ClusterDocument) -> Vec<String> {
    let Some(node) = &document.node else {
        let mut lines =
            vec!["one node alone: its logs are files of its own (no --journal)".to_owned()];
        lines.push(String::new());
        lines.extend(table(
            &["LOG", "HEAD"],
            document.logs.iter().map(|log| vec![log.log.clone(), log.head.to_string()]),
        ));
        return lines;
    };
    let mut lines = vec![match &document.leader {
        Some(LeaderDocument { node, url, epoch }) => {
            format!("{node} leads ({url}), in epoch {epoch}")
        }
        None => "nobody is known to lead at the moment".to_owned(),
    }];
    if let Some(engine) = &document.engine {
        lines.extend(of_engine(node, engine));
    }
    lines.push(String::new());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let nodes = document.nodes.iter().map(|node| {
        let role = match (&node.role, node.reachable) {
            (Some(role), true) => role.clone(),
            (_, true) => "-".to_owned(),
            (_, false) => "not reachable".to_owned(),
        };
        vec![
            node.node.clone(),
            role,
            or_dash(node.position.map(|position| position.to_string())),
            or_dash(node.version.clone()),
            node.url.clone(),
        ]
    });
    lines.extend(table(&["NODE", "ROLE", "SYSTEM HEAD", "VERSION", "URL"], nodes));
    let errors = document.nodes.iter().filter_map(|node| Some((&node.node, node.error.as_ref()?)));
    lines.extend(errors.map(|(node, error)| format!("{node}: {error}")));
    lines.push(String::new());
    lines.push(format!("Logs on {node}:"));
    let logs = document.logs.iter().map(|log| {
        vec![
            log.log.clone(),
            log.role.clone(),
            or_dash(log.leader.clone()),
            or_dash(log.epoch.map(|epoch| epoch.to_string())),
            log.head.to_string(),
            or_dash(log.place.map(|place| place.to_string())),
        ]
    });
    lines.extend(table(&["LOG", "ROLE", "LEADER", "EPOCH", "HEAD", "PLACE"], logs));
    lines
}

fn of_engine(node: &str, engine: &EngineDocument) -> Vec<String> {
    let EngineDocument { kind, connected, trouble, durable, reconnects } = engine;
    let reach = if *connected { "connected" } else { "NOT REACHED" };
    let again = match reconnects {
        0 => String::new(),
        _ => format!(", connected anew {reconnects} times"),
    };
    let mut lines = vec![format!("journal {kind}: {reach} from {node}{again}; {durable}")];
    lines.extend(trouble.iter().map(|trouble| format!("journal trouble: {trouble}")));
    lines
}

/// Columns that are as wide as what is in them.
fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let heads = heads.iter().map(|&head| head.to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    const CLUSTER: &str = r#"{"node":"b","journal":"postgres",
        "engine":{"kind":"postgres","connected":true,"trouble":null,"durable":"one server keeps it","reconnects":2},
        "leader":{"node":"a","url":"http://h:1","epoch":7},
        "nodes":[{"node":"a","url":"http://h:1","version":"0.1.0","reachable":true,"error":null,"role":"leading","position":9},
                 {"node":"c","url":"http://h:3","version":null,"reachable":false,"error":"refused","role":null,"position":null}],
        "logs":[{"log":"main","role":"following","epoch":7,"leader":"a","place":44,"head":12,
                 "void_entries":0,"foreign_batches":3,"repeated_offers":0}]}"#;

    #[test]
    fn people_see_who_leads_who_answers_and_how_far_each_is() {
        let document = ClusterDocument::read(CLUSTER.as_bytes()).unwrap();
        let expected = "\
a leads (http://h:1), in epoch 7
journal postgres: connected from b, connected anew 2 times; one server keeps it

NODE  ROLE           SYSTEM HEAD  VERSION  URL
a     leading        9            0.1.0    http://h:1
c     not reachable  -            -        http://h:3
c: refused

Logs on b:
LOG   ROLE       LEADER  EPOCH  HEAD  PLACE
main  following  a       7      12    44";
        assert_eq!(lines(&document).join("\n"), expected);
    }

    #[test]
    fn a_server_alone_says_so() {
        let alone = r#"{"node":null,"journal":"files","engine":null,"leader":null,"nodes":[],
            "logs":[{"log":"main","role":"leading","epoch":1,"leader":null,"place":null,"head":5,
                     "void_entries":0,"foreign_batches":0,"repeated_offers":0}]}"#;
        let document = ClusterDocument::read(alone.as_bytes()).unwrap();
        let lines = lines(&document);
        assert!(lines[0].contains("alone") && lines.last().unwrap() == "main  5", "{lines:?}");
    }

    #[test]
    fn what_is_no_answer_of_ours_is_refused() {
        for text in ["", "<html>", "{}"] {
            assert_eq!(ClusterDocument::read(text.as_bytes()).unwrap_err().code, Code::Unavailable);
        }
    }
}
