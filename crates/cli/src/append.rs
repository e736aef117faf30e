//! `wellspring append`: appends one event.

use crate::exit::{Code, Failure, InputKind, say};
use crate::import::ndjson;
use crate::problem::Problem;
use crate::shell;
use crate::target::Target;
use crate::wire::push_event;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read};
use wellspring_client::{Answer, Request};
use wellspring_host::subjects::SUBJECT_NAME;
use wellspring_types::{DataKind, Event, limits};

/// What `wellspring append` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Prints the position of the event. A --fail-if-... option makes the append conditional: it fails with \
exit code 1 if the log already holds a matching event.

Example: a name that can be claimed only once
  wellspring append --type UsernameClaimed --tag username:ada \\
    --fail-if-type UsernameClaimed --fail-if-tag username:ada")]
pub struct AppendArgs {
    /// Type of the event
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// Tag, usually key:value; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Payload: JSON, @FILE, or - for standard input
    #[arg(long, default_value = "{}", allow_hyphen_values = true)]
    data: String,
    /// Id of the event, a UUID; makes a retry safe [default: none]
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
    /// Metadata; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    metadata: Vec<String>,
    /// Seal the payload for this data subject, a tag, so that it can be erased
    #[arg(long, value_name = "TAG")]
    subject: Option<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    condition: ConditionArgs,
}

/// The condition of an append.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Condition")]
struct ConditionArgs {
    /// Fail if an event has one of these types (and all --fail-if-tag); repeatable
    #[arg(long, value_name = "TYPE")]
    fail_if_type: Vec<String>,
    /// Fail if an event has all of these tags (and one --fail-if-type); repeatable
    #[arg(long, value_name = "TAG")]
    fail_if_tag: Vec<String>,
    /// Ignore events up to this position in the condition [default: 0]
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
}

/// Appends and prints the position.
pub(crate) fn run(args: &AppendArgs) -> Result<(), Failure> {
    let body = body(args)?;
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(args.subject.iter().map(|subject| (SUBJECT_NAME, subject.as_str())));
    let path = args.target.path("append");
    let request = Request { method: "POST", path: &path, headers: &headers, body: Some(&body) };
    let answer = args.target.client()?.call(&request)?;
    if answer.head.status != 200 {
        return Err(refusal(args, &answer));
    }
    let done: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match done["first"].as_u64() {
        Some(position) => say(&position.to_string())?,
        None => {
            let message = "the server's answer has no position; the event may be in the log";
            return Err(Failure::new(Code::Unavailable, message));
        }
    }
    if done["replayed"].as_bool() == Some(true) {
        eprintln!("An event with this id is already in the log; nothing was added.");
    }
    Ok(())
}

fn body(args: &AppendArgs) -> Result<Vec<u8>, Failure> {
    let text = payload(&args.data)?;
    let data: &RawValue = serde_json::from_str(&text).map_err(|error| {
        Failure::data(format!("--data is not JSON: {error}; put text in quotes: --data '\"text\"'"))
    })?;
    let id = args.id.as_deref().map(|id| ndjson::uuid("--id", id)).transpose();
    let id = id.map_err(|fault| Failure::usage(fault.to_string()))?;
    let pair = |text: &String| match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Failure::usage(format!("--metadata {text}: must be KEY=VALUE"))),
    };
    let event = Event {
        event_type: args.event_type.clone(),
        tags: args.tags.clone(),
        data: data.get().as_bytes().to_vec(),
        kind: DataKind::Json,
        id,
        metadata: args.metadata.iter().map(pair).collect::<Result<_, _>>()?,
    };
    event.as_ref().check().map_err(|invalid| Failure::data(invalid.to_string()))?;
    let mut body = b"{\"events\":[".to_vec();
    push_event(&mut body, &event);
    body.push(b']');
    if !(args.condition.fail_if_type.is_empty() && args.condition.fail_if_tag.is_empty()) {
        let item = serde_json::json!({ "types": args.condition.fail_if_type, "tags": args.condition.fail_if_tag });
        let mut condition = serde_json::json!({ "failIfEventsMatch": { "items": [item] } });
        if let Some(after) = args.condition.after {
            condition["after"] = after.into();
        }
        body.extend_from_slice(format!(",\"condition\":{condition}").as_bytes());
    } else if let Some(after) = args.condition.after {
        return Err(Failure::usage(format!(
            "--after {after} is part of a condition, and there is none. Add --fail-if-type or --fail-if-tag, \
             or leave --after out; an event is always appended at the end of the log"
        )));
    }
    body.push(b'}');
    Ok(body)
}

fn payload(given: &str) -> Result<String, Failure> {
    let mut source: Box<dyn Read> = match given.strip_prefix('@') {
        Some(path) => Box::new(File::open(path).map_err(|error| {
            Failure::new(Code::NoInput, format!("cannot read {path}: {error}"))
        })?),
        None if given == "-" => Box::new(io::stdin()),
        None => return Ok(given.to_owned()),
    };
    let mut text = String::new();
    source
        .by_ref()
        .take(limits::MAX_DATA_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::data(format!("--data {given}: {error}")))?;
    if text.len() > limits::MAX_DATA_BYTES {
        let limit = limits::MAX_DATA_BYTES;
        return Err(Failure::data(format!("--data {given}: longer than {limit} bytes")));
    }
    Ok(text)
}

fn refusal(args: &AppendArgs, answer: &Answer) -> Failure {
    let problem = Problem::of(answer);
    if let Some(conflict) = &problem.conflict {
        let at = conflict.position;
        let types = args.condition.fail_if_type.iter().map(|name| ("--type", name.clone()));
        let tags = args.condition.fail_if_tag.iter().map(|tag| ("--tag", tag.clone()));
        let query: Vec<_> = types.chain(tags).collect();
        let instead = match args.condition.after {
            Some(after) => format!("--after {at} instead of --after {after}"),
            None => format!("--after {at} added to the same command"),
        };
        return Failure::new(
            Code::Refused,
            format!(
                "not appended: the event at position {at} matches the condition.\n  \
                 Look at it:       wellspring tail{}{} --after {}\n  \
                 Decide again; if the event is still valid, append it with {instead}",
                args.target.flags(),
                shell::flags(&query),
                at.saturating_sub(1)
            ),
        );
    }
    let Failure { code, message } = args.target.refusal(&problem, InputKind::Data);
    Failure::new(code, format!("not appended: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::sync::{Arc, Mutex};
    use wellspring_client::test_server::{Reply, TestServer};
    use wellspring_host::subjects::SUBJECT_HEADER;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: AppendArgs,
    }

    fn append(server: &TestServer, more: &[&str]) -> Result<(), Failure> {
        let line = [&["x", "--url", server.url(), "--type", "T"], more].concat();
        run(&Line::try_parse_from(line).unwrap().args)
    }

    #[test]
    fn the_request_is_what_was_asked_for() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let server = TestServer::start(move |request, _| {
            let subject = request.header(SUBJECT_HEADER).to_owned();
            let body = String::from_utf8(request.body.clone()).unwrap();
            kept.lock().unwrap().push((body, subject));
            Reply::json(200, r#"{"first":5,"last":5,"head":5,"replayed":false}"#)
        });
        append(&server, &["--tag", "a:1", "--data", "{\"n\": 1.0}", "--metadata", "k=v=w"])
            .unwrap();
        append(&server, &["--data", "-1", "--fail-if-tag", "a:1", "--after", "4"]).unwrap();
        append(&server, &["--subject", "student:8f14e45f"]).unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(
            seen[0].0,
            r#"{"events":[{"type":"T","tags":["a:1"],"data":{"n": 1.0},"metadata":{"k":"v=w"}}]}"#
        );
        assert_eq!(
            seen[1].0,
            r#"{"events":[{"type":"T","tags":[],"data":-1}],"condition":{"after":4,"failIfEventsMatch":{"items":[{"tags":["a:1"],"types":[]}]}}}"#
        );
        assert_eq!((&*seen[1].1, &*seen[2].1), ("", "student:8f14e45f"));
    }

    #[test]
    fn exit_codes_tell_a_conflict_from_bad_data_and_bad_use() {
        let server = TestServer::start(|_, _| {
            Reply::json(
                409,
                r#"{"type":"/problems/append-condition-failed","conflict":{"position":17,"clause":"failIfEventsMatch","item":0}}"#,
            )
        });
        let failure = append(&server, &["--fail-if-type", "T"]).unwrap_err();
        assert_eq!(failure.code, Code::Refused);
        assert!(failure.message.contains("position 17"), "{}", failure.message);
        // The suggested command can be pasted: the same server, log and query.
        let more = ["--log", "orders", "--fail-if-type", "T", "--fail-if-tag", "name:O'Neil x"];
        let failure = append(&server, &more).unwrap_err();
        let hint = format!(
            "wellspring tail --url {} --log orders --type T --tag 'name:O'\\''Neil x' --after 16\n",
            server.url()
        );
        assert!(failure.message.contains(&hint), "{}", failure.message);
        for (more, code) in [
            (&["--data", "{"][..], Code::Data),
            (&["--tag", "a", "--tag", "a"], Code::Data),
            (&["--id", "x"], Code::Usage),
            (&["--metadata", "x"], Code::Usage),
            (&["--after", "1"], Code::Usage), // no condition it could belong to
            (&["--data", "@/does/not/exist"], Code::NoInput),
        ] {
            assert_eq!(append(&server, more).unwrap_err().code, code, "{more:?}");
        }
    }
}
