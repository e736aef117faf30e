//! Tests of rows becoming events.

use super::*;

fn mapping() -> CsvMapping {
    CsvMapping { fixed_type: Some("Row".into()), delimiter: b',', ..CsvMapping::default() }
}

fn rows(text: &str, mapping: &CsvMapping) -> Vec<(u64, Result<Event, Fault>)> {
    let mut rows = CsvRows::new(text.as_bytes(), mapping).unwrap();
    let mut all = Vec::new();
    while let Some((line, event)) = rows.next().unwrap() {
        all.push((line, event.map(|read| read.event)));
    }
    all
}

fn data(text: &str) -> Vec<String> {
    let event =
        |(_, event): (u64, Result<Event, Fault>)| String::from_utf8(event.unwrap().data).unwrap();
    rows(text, &mapping()).into_iter().map(event).collect()
}

#[test]
fn quotes_line_breaks_and_empty_cells() {
    for ends in ["\n", "\r\n"] {
        let text = "a,b\n\n\n1,\"x\ny\"\n2\n\n3,4".replace('\n', ends);
        let found: Vec<_> =
            rows(&text, &mapping()).into_iter().map(|(n, e)| (n, e.is_ok())).collect();
        assert_eq!(found, [(4, true), (6, false), (8, true)], "{ends:?}");
    }
    let text = "a,b c,d\r\n\"x \"\"y\"\"\",\"1\n2\",\r\n\n,\"\",z,\n";
    let all = rows(text, &mapping());
    assert_eq!(all.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 5]);
    let first = all[0].1.as_ref().unwrap();
    assert_eq!(first.data, br#"{"a":"x \"y\"","b c":"1\n2","d":null}"#);
    assert_eq!(all[1].1.as_ref().unwrap_err().what, "the row has 4 cells, the header 3");
}

#[test]
fn numbers_stay_numbers_only_as_json_writes_them() {
    for number in ["0", "-0", "10", "1.50", "1e5", "1E+5", "-2.5e-10", "12345678901234567890123"] {
        assert_eq!(data(&format!("n\n{number}\n")), [format!("{{\"n\":{number}}}")]);
        assert!(serde_json::from_str::<serde_json::Value>(number).is_ok());
    }
    for text in [
        "007", "NaN", "+1", "1.", ".5", "1e", "1e+", "0x10", "-", "1 ", "1,5", "Infinity", "00",
        "true",
    ] {
        assert_eq!(data(&format!("n\n\"{text}\"\n")), [format!("{{\"n\":\"{text}\"}}")]);
    }
}

#[test]
fn columns_become_type_tags_and_time() {
    let mapping = CsvMapping {
        fixed_type: None,
        type_column: Some("kind".into()),
        tags: vec!["origin".into(), "airport=origin".into(), "airport=dest".into(), "tail".into()],
        time: Some("at".into()),
        nulls: vec!["NA".into()],
        delimiter: b';',
    };
    let text = "kind;origin;dest;tail;at\nTookOff;EWR;EWR;NA;2013-01-01\nLanded;JFK;;N1;\n";
    let all: Vec<Event> = rows(text, &mapping).into_iter().map(|(_, e)| e.unwrap()).collect();
    assert_eq!(all[0].event_type, "TookOff");
    assert_eq!(all[0].tags, ["origin:EWR", "airport:EWR"]);
    assert_eq!(all[0].metadata, [("time".to_owned(), "2013-01-01".to_owned())]);
    let data = br#"{"kind":"TookOff","origin":"EWR","dest":"EWR","tail":null,"at":"2013-01-01"}"#;
    assert_eq!(all[0].data, data);
    assert_eq!(all[1].tags, ["origin:JFK", "airport:JFK", "tail:N1"]);
    assert!(all[1].metadata.is_empty());
}

#[test]
fn faults_name_line_and_column() {
    let by_column = CsvMapping { fixed_type: None, type_column: Some("kind".into()), ..mapping() };
    let all = rows("kind,x\n,1\n", &by_column);
    assert_eq!(all[0].1.as_ref().unwrap_err().field, "kind (the type)");
    let mut tagged = mapping();
    tagged.tags.push("x".into());
    let long = "y".repeat(300);
    let all = rows(&format!("x\n{long}\n\"a\tb\"\nok\n"), &tagged);
    assert_eq!(all.iter().map(|(_, e)| e.is_err()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(all[0].1.as_ref().unwrap_err().field, "tags[0]");
    let mut bytes = CsvRows::new(&b"x\n\xff\n"[..], &mapping()).unwrap();
    assert_eq!(bytes.next().unwrap().unwrap().1.unwrap_err().field, "x");
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let fails = |text: &str, mapping: &CsvMapping| {
        CsvRows::new(text.as_bytes(), mapping).err().unwrap().message
    };
    assert!(fails("", &mapping()).contains("empty"));
    assert!(fails("a,,b\n", &mapping()).contains("no name"));
    assert!(fails("a,a\n", &mapping()).contains("twice"));
    assert!(fails("a\n", &CsvMapping { fixed_type: None, ..mapping() }).contains("--type"));
    let tags = CsvMapping { tags: vec!["b".into()], ..mapping() };
    assert!(fails("a,c\n", &tags).contains("the header has: a, c"));
    for broken in ["a,\"b\n1,2\n", "a,\"b\"x\n", "{\"type\":\"T\",\"tags\":[\"a\"]}\n"] {
        let message = fails(broken, &tags);
        assert!(message.starts_with("line 1, the header: "), "{broken}: {message}");
        assert!(message.contains("quote"), "{broken}: {message}");
    }
}

#[test]
fn an_unclosed_quote_costs_its_row_and_not_the_file() {
    let bad = |text: &str| -> Vec<u64> {
        rows(text, &mapping()).into_iter().filter(|(_, e)| e.is_err()).map(|(n, _)| n).collect()
    };
    assert_eq!(bad("a,b\n1,x\n2,\"oops\n3,y\n4,z\n"), [3]);
    assert_eq!(bad("a,b\n1,\"two\nlines\"\n"), [0; 0]);
    assert_eq!(bad("a,b\n1,5\" pipe"), [0; 0]);
    // The quote is closed by that of a later row, whose cells are then too many for one row.
    assert_eq!(bad("a,b\n1,\"oops\n2,y\n3,\",z\n4,w\n"), [2, 4]);
}

#[test]
fn what_export_wrote_is_refused_unless_its_columns_are_named() {
    let text = "position,recorded_at,type,tags,id,metadata,data,data_base64\n\
                7,2026-01-01T00:00:00Z,T,[],,,\"{\"\"n\"\": 1}\",\n";
    let none = CsvMapping { fixed_type: None, ..mapping() };
    let refused = CsvRows::new(text.as_bytes(), &none).err().unwrap();
    assert_eq!(refused.code, crate::exit::Code::Usage);
    for word in ["one-way", "NDJSON or CloudEvents", "--type-column type"] {
        assert!(refused.message.contains(word), "{}", refused.message);
    }
    let named = CsvMapping { type_column: Some("type".into()), ..none };
    let event = rows(text, &named).remove(0).1.unwrap();
    assert_eq!(event.event_type, "T");
    assert!(event.data.starts_with(br#"{"position":7,"#), "{:?}", event.data);
    assert!(CsvRows::new(text.as_bytes(), &mapping()).is_ok());
}
