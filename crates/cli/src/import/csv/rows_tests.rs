//! Tests of rows becoming events.

use super::super::column_types::found;
use super::*;

fn mapping() -> CsvMapping {
    CsvMapping { fixed_type: Some("Row".into()), ..CsvMapping::default() }
}

fn rows(text: &str, mapping: &CsvMapping) -> Vec<(u64, Result<Event, Fault>)> {
    let columns = Some(found(text.as_bytes(), mapping).unwrap());
    let mapping = CsvMapping { columns, ..mapping.clone() };
    let mut rows = CsvRows::new(text.as_bytes(), &mapping).unwrap();
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
fn a_column_has_one_type() {
    let text = "n,id,price,none\n1,1e5,1.10,\n-4.5,12345e67,2,\n,abc,,\n";
    assert_eq!(
        data(text),
        [
            r#"{"n":1,"id":"1e5","price":"1.10","none":null}"#,
            r#"{"n":-4.5,"id":"12345e67","price":"2","none":null}"#,
            r#"{"n":null,"id":"abc","price":null,"none":null}"#,
        ]
    );
    let declared = CsvMapping {
        text: vec!["n".into()],
        numbers: vec!["price".into(), "id".into()],
        ..mapping()
    };
    let rows = rows(text, &declared);
    let first = rows[0].1.as_ref().unwrap();
    assert_eq!(first.data, br#"{"n":"1","id":1e5,"price":1.10,"none":null}"#);
    let fault = rows[2].1.as_ref().unwrap_err();
    assert_eq!((fault.field.as_str(), fault.what.contains("--number")), ("id", true));
}

#[test]
fn a_column_that_changes_while_it_is_imported_stops_the_import() {
    let columns = Some(found(&b"n,m\n1,\n"[..], &mapping()).unwrap());
    let typed = CsvMapping { columns, ..mapping() };
    for row in ["x,", "1,y", "1.10,"] {
        let grown = format!("n,m\n1,\n{row}\n");
        let mut rows = CsvRows::new(grown.as_bytes(), &typed).unwrap();
        assert!(rows.next().unwrap().unwrap().1.is_ok());
        let broken = rows.next().unwrap_err();
        assert_eq!(broken.line, 3);
        assert!(broken.what.contains("--text"), "{broken:?}");
    }
}

#[test]
fn columns_hold_ids_and_times_of_recording() {
    let mapping = CsvMapping { recorded_at: Some("at".into()), id: Some("id".into()), ..mapping() };
    let id = "018f5c3e-9b2a-7c11-8d3e-0123456789ab";
    let text = format!(
        "id,at\n{id},2020-01-02T03:04:05+01:00\n{id},2020-02-30T00:00:00Z\nx,2020-01-01T00:00:00Z\n{id},\n"
    );
    let columns = Some(found(text.as_bytes(), &mapping).unwrap());
    let mapping = CsvMapping { columns, ..mapping };
    let mut rows = CsvRows::new(text.as_bytes(), &mapping).unwrap();
    let first = rows.next().unwrap().unwrap().1.unwrap();
    assert_eq!(first.recorded_at.as_deref(), Some("2020-01-02T03:04:05+01:00"));
    assert_eq!(first.event.id.unwrap().to_string(), id);
    for field in ["at", "id", "at"] {
        assert_eq!(rows.next().unwrap().unwrap().1.unwrap_err().field, field);
    }
}

#[test]
fn a_header_in_the_middle_is_named() {
    let twice = "id,name\n1,Ann\n\u{feff}id,name\n2,Bob\n";
    let faults: Vec<bool> = rows(twice, &mapping()).iter().map(|(_, e)| e.is_err()).collect();
    assert_eq!(faults, [false, true, false]);
    assert_eq!(rows("word\nword\n", &mapping()).len(), 1);
    assert!(rows("word\nword\n", &mapping())[0].1.is_ok());
}

#[test]
fn a_first_column_without_a_name_has_one() {
    assert_eq!(data("\"\",\"a\"\n\"1\",2\n"), [r#"{"column1":1,"a":2}"#]);
    assert!(rows(",a\n1,2\n,a\n", &mapping())[1].1.is_err(), "the header again");
}

#[test]
fn columns_become_type_tags_and_time() {
    let mapping = CsvMapping {
        fixed_type: None,
        type_column: Some("kind".into()),
        tags: vec!["origin".into(), "airport=origin".into(), "airport=dest".into(), "tail".into()],
        time: Some("at".into()),
        nulls: vec!["NA".into()],
        dialect: CsvDialect { delimiter: b';', ..CsvDialect::default() },
        ..CsvMapping::default()
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
    assert!(fails("", &mapping()).contains("no line with text"));
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
