use super::*;

fn native(body: &str) -> ReadResult<Append> {
    read_append(body.as_bytes(), Style::Native, KeptInLog::default(), &mut EventSealer::refusing())
        .map(|body| body.append)
}

fn dialect(body: &str) -> Append {
    read_append(body.as_bytes(), Style::Dialect, KeptInLog::default(), &mut EventSealer::refusing())
        .unwrap()
        .append
}

fn fault(body: &str) -> (String, FaultKind) {
    let fault = native(body).unwrap_err();
    (fault.field.clone(), fault.kind.clone())
}

#[test]
fn payloads_are_kept_byte_for_byte() {
    for data in ["1e400", r#"{"b":1, "a":[1.0,1.00] ,"b":"\u00e9\/é"}"#, "null", "\"x\"", "-0"] {
        let body = format!(r#"{{"events":[{{"type":"T","tags":["a"],"data": {data} }}]}}"#);
        let append = native(&body).unwrap();
        let event = append.events.iter().next().unwrap();
        assert_eq!(event.data(), data.as_bytes());
        assert_eq!(event.kind(), DataKind::Json);
    }
}

#[test]
fn every_field_of_an_event_is_read() {
    let id = "018f5c3e-9b2a-7c11-8d3e-0123456789ab";
    let body = format!(
        r#"{{"events":[{{"id":"{id}","type":"T\n\u00e9","tags":[],"data_base64":"AP8=",
            "metadata":{{"k":"v"}}}}]}}"#
    )
    .replace("\\n", "");
    let append = native(&body).unwrap();
    let event = append.events.iter().next().unwrap();
    assert_eq!((event.event_type(), event.data()), ("Té", &[0, 255][..]));
    assert_eq!(event.id().unwrap().to_string(), id);
    assert_eq!(event.metadata().collect::<Vec<_>>(), [("k", "v")]);
    let mut out = Vec::new();
    push_event(&mut out, &event, &Disclosure::default());
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["data_base64"], "AP8=");
    assert_eq!(json["metadata"]["k"], "v");
    assert_eq!(json["id"], id);
    assert!(json.get("data").is_none());
}

#[test]
fn faults_name_their_path() {
    let event = r#"{"type":"T","tags":[],"data":1}"#;
    let cases = [
        (r#"{"events":[{"type":"T","tags":[1],"data":1}]}"#.to_owned(), "events[0].tags[0]"),
        (format!(r#"{{"events":[{event},{{"type":1}}]}}"#), "events[1].type"),
        (format!(r#"{{"events":[{event},{{"type":"T","data":1,"tag":1}}]}}"#), "events[1].tag"),
        (r#"{"events":[{"type":"T","tags":["a","a"],"data":1}]}"#.to_owned(), "events[0].tags[1]"),
        (r#"{"events":[{"type":"T","tags":[]}]}"#.to_owned(), "events[0].data"),
        (r#"{"events":[{"type":"T","type":"T","data":1}]}"#.to_owned(), "events[0].type"),
        (r#"{"events":[]}"#.to_owned(), "events"),
        ("{}".to_owned(), "events"),
        (format!(r#"{{"events":[{event}],"extra":1}}"#), "extra"),
        (format!(r#"{{"events":[{event}],"ack":"later"}}"#), "ack"),
        (format!(r#"{{"events":[{event}],"fence":{{"lease":"x"}}}}"#), "fence.token"),
        (format!(r#"{{"events":[{event}],"condition":{{"after":-1}}}}"#), "condition.after"),
        (
            format!(
                r#"{{"events":[{event}],"condition":{{"failIfEventsMatch":{{"items":[{{"tags":[""]}}]}}}}}}"#
            ),
            "condition.failIfEventsMatch.items[0].tags[0]",
        ),
        (
            r#"{"events":[{"type":"T","tags":[],"data_base64":"*"}]}"#.to_owned(),
            "events[0].data_base64",
        ),
        (r#"{"events":[{"type":"\ud800","tags":[],"data":1}]}"#.to_owned(), "events[0].type"),
        (
            r#"{"events":[{"type":"T","data":1,"data_base64":"AA=="}]}"#.to_owned(),
            "events[0].data_base64",
        ),
        (format!(r#"{{"events":[{}]}}"#, vec![event; 1001].join(",")), "events"),
    ];
    for (body, field) in cases {
        assert_eq!(fault(&body).0, field, "{}", &body[..body.len().min(120)]);
    }
}

#[test]
fn sizes_are_told_from_rules() {
    let body = format!(r#"{{"events":[{{"type":"{}","tags":[],"data":1}}]}}"#, "x".repeat(256));
    let (field, kind) = fault(&body);
    assert_eq!(field, "events[0].type");
    assert!(matches!(kind, FaultKind::TooLarge { limit: 255, .. }));
}

#[test]
fn what_is_not_utf8_is_malformed() {
    let fault = read_append(
        b"{\"events\":\"\xff\"}",
        Style::Native,
        KeptInLog::default(),
        &mut EventSealer::refusing(),
    )
    .unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Syntax(_)));
}

#[test]
fn missing_clauses_mean_what_the_contract_says() {
    let condition = |text: &str| {
        let body =
            format!(r#"{{"events":[{{"type":"T","data":1,"tags":[]}}],"condition":{text}}}"#);
        native(&body).unwrap().condition.unwrap()
    };
    let all = Some(Query::all());
    assert_eq!(condition("{}").fail_if_events_match, all);
    assert_eq!(condition(r#"{"after":5}"#).fail_if_events_match, all);
    let only = condition(r#"{"failIfExists":{"items":[{"types":["A"]}]}}"#);
    assert_eq!(only.fail_if_events_match, None);
    let both = condition(r#"{"failIfExists":{"items":[{"types":["A"]}]},"after":3}"#);
    assert_eq!((both.fail_if_events_match, both.after), (all.clone(), Some(3)));
    assert_eq!(condition(r#"{"failIfEventsMatch":{"items":[]}}"#).fail_if_events_match, all);
}

#[test]
fn dialects_take_one_event_and_digits_and_keep_strings() {
    let body =
        r#"{"events":{"type":"T","tags":["x"],"data":"{\"a\":1}"},"condition":{"after":"12"}}"#;
    let append = dialect(body);
    let event = append.events.iter().next().unwrap();
    assert_eq!((event.data(), event.kind()), (&br#"{"a":1}"#[..], DataKind::Json));
    assert_eq!(append.condition.unwrap().after, Some(12));

    for text in ["hello", "", " 1", "{\"a\":"] {
        let data = serde_json::to_string(text).unwrap();
        let body = format!(r#"{{"events":[{{"type":"T","tags":[],"data":{data}}}]}}"#);
        let append = dialect(&body);
        let event = append.events.iter().next().unwrap();
        assert_eq!((event.data(), event.kind()), (text.as_bytes(), DataKind::Binary));
    }
}
