//! `wellspring cluster status`: a table of the nodes, and of the logs on the requested one.

use super::ask;
use super::document::{
    ClusterDocument, EngineDocument, GroupDocument, LeaderDocument, NodeDocument,
};
use crate::exit::{Code, Failure, say};
use crate::numbers::counted;
use crate::table::table;
use wellspring_client::{Client, Request};

/// The path of the request.
pub(crate) const PATH: &str = "/v1/cluster";

pub(super) fn run(client: &mut Client, json: bool) -> Result<(), Failure> {
    let answer = ask(client, &Request::get(PATH, &[]))?;
    let document = ClusterDocument::read(&answer.body)?;
    if json {
        say(String::from_utf8_lossy(&answer.body).trim_end())?
    } else {
        say(&lines(&document).join("\n"))?
    }
    if let Some(lacks) = group_of(&document).and_then(GroupDocument::lacks) {
        return Err(Failure::new(Code::Unavailable, lacks));
    }
    match &document.node {
        Some(node) if leading(&document).is_none() => {
            Err(Failure::new(Code::Unavailable, format!("no node leads, as far as {node} knows")))
        }
        _ => Ok(()),
    }
}

/// The node that reports itself as the leader: what others know of the leader may be outdated.
pub(super) fn leading(document: &ClusterDocument) -> Option<&NodeDocument> {
    let leads = |node: &&NodeDocument| node.reachable && node.role.as_deref() == Some("leading");
    let named = document.leader.as_ref().map(|leader| &leader.node);
    let mut leading = document.nodes.iter().filter(leads).collect::<Vec<_>>();
    leading.sort_by_key(|node| Some(&node.node) != named);
    leading.first().copied()
}

pub(super) fn group_of(document: &ClusterDocument) -> Option<&GroupDocument> {
    document.engine.as_ref()?.group.as_ref()
}

/// The leader, in words.
fn who_leads(document: &ClusterDocument) -> String {
    match (leading(document), &document.leader) {
        (Some(node), Some(leader)) if node.node == leader.node => {
            format!("{} leads ({}), in epoch {}", leader.node, leader.url, leader.epoch)
        }
        (Some(NodeDocument { node, url, .. }), _) => format!("{node} leads ({url})"),
        (None, Some(LeaderDocument { node, url, epoch })) => {
            format!("no known leader; the last one was {node} ({url}), in epoch {epoch}")
        }
        (None, None) => "no known leader".to_owned(),
    }
}

/// The text output.
fn lines(document: &ClusterDocument) -> Vec<String> {
    let Some(node) = &document.node else {
        let mut lines = vec!["a single node: its logs are its own files (no --journal)".to_owned()];
        lines.push(String::new());
        lines.extend(table(
            &["LOG", "HEAD"],
            document.logs.iter().map(|log| vec![log.log.clone(), log.head.to_string()]),
        ));
        return lines;
    };
    let mut lines = vec![who_leads(document)];
    if let Some(engine) = &document.engine {
        lines.extend(of_engine(node, engine));
    }
    if let Some(group) = group_of(document) {
        lines.extend(of_group(node, group));
    }
    lines.push(String::new());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let has_group = group_of(document).is_some();
    let nodes = document.nodes.iter().map(|node| {
        let role = match (&node.role, node.reachable) {
            (Some(role), true) => role.clone(),
            (_, true) => "-".to_owned(),
            (_, false) => "not reachable".to_owned(),
        };
        let number = |number: Option<u64>| or_dash(number.map(|number| number.to_string()));
        let mut row = vec![node.node.clone(), role, number(node.position)];
        row.extend(has_group.then(|| number(node.applied_index)));
        row.extend([or_dash(node.version.clone()), node.url.clone()]);
        row
    });
    let entry = if has_group { &["ENTRY"][..] } else { &[] };
    let heads = [&["NODE", "ROLE", "SYSTEM HEAD"], entry, &["VERSION", "URL"]].concat();
    lines.extend(table(&heads, nodes));
    let errors = document.nodes.iter().filter_map(|node| Some((&node.node, node.error.as_ref()?)));
    lines.extend(errors.map(|(node, error)| format!("{node}: {error}")));
    lines.push(String::new());
    lines.push(format!("Logs on {node}:"));
    let logs = document.logs.iter().map(|log| {
        vec![
            log.log.clone(),
            log.role.clone(),
            or_dash(log.leader.clone()),
            or_dash(log.pinned_to.clone()),
            log.rate.to_string(),
            or_dash(log.epoch.map(|epoch| epoch.to_string())),
            log.head.to_string(),
            or_dash(log.place.map(|place| place.to_string())),
        ]
    });
    lines.extend(table(
        &["LOG", "ROLE", "LEADER", "PINNED TO", "EVENTS/S", "EPOCH", "HEAD", "PLACE"],
        logs,
    ));
    lines
}

/// The group, and its members as the node sees them.
fn of_group(node: &str, group: &GroupDocument) -> Vec<String> {
    let (reachable, voters) = group.voters();
    let orders = match &group.orderer {
        Some(orderer) => format!("{orderer} orders, in term {}", group.term),
        None => format!("no known orderer, in term {}", group.term),
    };
    let GroupDocument { applied_index, last_index, .. } = group;
    let far = format!("entry {applied_index} of {last_index} on {node}");
    let reach = match voters {
        0 => "waiting for cluster init or join".to_owned(),
        _ => format!("{reachable} of {voters} voters reachable"),
    };
    let mut lines = vec![format!("group: {reach}; {orders}; {far}")];
    lines.extend(group.even_voters_warning());
    let learners: Vec<&str> =
        group.members.iter().filter(|member| !member.votes).map(|member| &*member.node).collect();
    if !learners.is_empty() {
        lines.push(format!("learners: {}", learners.join(", ")));
    }
    lines
}

fn of_engine(node: &str, engine: &EngineDocument) -> Vec<String> {
    let EngineDocument { kind, connected, trouble, durable, reconnects, .. } = engine;
    let reach = if *connected { "connected" } else { "NOT REACHED" };
    let again = match reconnects {
        0 => String::new(),
        _ => format!(", {}", counted(*reconnects, "reconnection", "reconnections")),
    };
    let durable = in_short(durable);
    let mut lines = vec![format!("journal {kind}: {reach} from {node}{again}; {durable}")];
    lines.extend(trouble.iter().map(|trouble| format!("journal trouble: {trouble}")));
    lines
}

/// What durable means, shortened unless it is a warning; --json and the server's first lines have
/// all of it.
fn in_short(durable: &str) -> String {
    const SHORT: [(&str, &str); 2] = [
        ("it is lost with that disk", "durable on one server"),
        ("it survives the loss of either", "durable on two servers"),
    ];
    let short = SHORT.iter().find(|(part, _)| durable.contains(part));
    match (short, durable.split_once(": ")) {
        (Some((_, short)), Some((server, _))) => format!("{server}, {short}"),
        _ => durable.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = r#"{"node":"b","journal":"postgres",
        "engine":{"kind":"postgres","connected":true,"trouble":null,"durable":"one server keeps it","reconnects":2},
        "leader":{"node":"a","url":"http://h:1","epoch":7},
        "nodes":[{"node":"a","url":"http://h:1","version":"0.1.0","reachable":true,"error":null,"role":"leading","position":9},
                 {"node":"c","url":"http://h:3","version":null,"reachable":false,"error":"refused","role":null,"position":null}],
        "logs":[{"log":"main","role":"following","epoch":7,"leader":"a","pinned_to":"c","rate":7,"place":44,"head":12,
                 "void_entries":0,"foreign_batches":3,"repeated_offers":0}]}"#;

    #[test]
    fn the_table_shows_the_leader_and_the_state_of_each_node() {
        let document = ClusterDocument::read(CLUSTER.as_bytes()).unwrap();
        let expected = "\
a leads (http://h:1), in epoch 7
journal postgres: connected from b, 2 reconnections; one server keeps it

NODE  ROLE           SYSTEM HEAD  VERSION  URL
a     leading        9            0.1.0    http://h:1
c     not reachable  -            -        http://h:3
c: refused

Logs on b:
LOG   ROLE       LEADER  PINNED TO  EVENTS/S  EPOCH  HEAD  PLACE
main  following  a       c          7         7      12    44";
        assert_eq!(lines(&document).join("\n"), expected);
    }

    #[test]
    fn a_former_leader_is_not_shown_as_the_leader() {
        let first = |text: &str| {
            let document = ClusterDocument::read(text.as_bytes()).unwrap();
            (lines(&document)[0].clone(), leading(&document).map(|node| node.node.clone()))
        };
        let last = "no known leader; the last one was a (http://h:1), in epoch 7".to_owned();
        let follows = CLUSTER.replace(r#""role":"leading""#, r#""role":"claiming""#);
        assert_eq!(first(&follows), (last.clone(), None));
        let gone = CLUSTER.replace(r#""reachable":true"#, r#""reachable":false"#);
        assert_eq!(first(&gone), (last, None));
        let other = CLUSTER.replace(r#""leader":{"node":"a""#, r#""leader":{"node":"c""#);
        assert_eq!(first(&other), ("a leads (http://h:1)".to_owned(), Some("a".to_owned())));
    }

    #[test]
    fn durability_is_shortened_unless_it_is_a_warning() {
        let one = "PostgreSQL 15.18: an acknowledged append is on its disk and survives a power loss; it is lost with \
                   that disk, and more";
        assert_eq!(in_short(one), "PostgreSQL 15.18, durable on one server");
        let off = "PostgreSQL 15.18: a crash of its machine may lose acknowledged appends, because fsync is off";
        assert_eq!(in_short(off), off);
    }

    #[test]
    fn a_server_alone_says_so() {
        let alone = r#"{"node":null,"journal":"files","engine":null,"leader":null,"nodes":[],
            "logs":[{"log":"main","role":"leading","epoch":1,"leader":null,"place":null,"head":5,
                     "void_entries":0,"foreign_batches":0,"repeated_offers":0}]}"#;
        let document = ClusterDocument::read(alone.as_bytes()).unwrap();
        let lines = lines(&document);
        assert!(
            lines[0].contains("single node") && lines.last().unwrap() == "main  5",
            "{lines:?}"
        );
    }

    #[test]
    fn an_answer_of_another_server_is_refused() {
        for text in ["", "<html>", "{}"] {
            assert_eq!(ClusterDocument::read(text.as_bytes()).unwrap_err().code, Code::Unavailable);
        }
    }
}
