use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use wellspring_kafka::Record;

fn record(value: &str) -> Record {
    Record {
        partition: 3,
        offset: 77,
        timestamp_ms: 951_782_400_001,
        key: Some(Bytes::from_static(b"k-1")),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        headers: vec![
            ("h".into(), Some(Bytes::from_static(b"one"))),
            ("h".into(), Some(Bytes::from_static(b"two"))),
            ("bad".into(), Some(Bytes::from_static(b"\xff"))),
            ("null".into(), None),
        ],
    }
}

fn rendered(template: &str, record: &Record) -> Result<Option<String>, String> {
    let mut out = String::new();
    let template = Template::parse(template)?;
    let rendering = template.render(&RecordParts::new("orders", record), &mut out)?;
    Ok((rendering == Rendering::Complete).then_some(out))
}

#[test]
fn every_place_is_filled() {
    let record = record(r#"{"a":{"b/c":["x\n",1.50,true,null]},"t":"ü"}"#);
    for (template, expected) in [
        ("Order", "Order"),
        ("{topic}/{partition}@{offset} {key}", "orders/3@77 k-1"),
        ("{timestamp}", "2000-02-29T00:00:00.001000Z"),
        ("x:{header:h}", "x:two"),
        ("{value:/a/b~1c/1}{value:/a/b~1c/2}{value:/t}", "1.50trueü"),
        ("{value:/a/b~1c/0}", "x\n"),
        ("{{{key}}}", "{k-1}"),
        ("{{key}}", "{key}"),
        ("{key?}-{value:/t?}", "k-1-ü"),
    ] {
        assert_eq!(rendered(template, &record), Ok(Some(expected.into())), "{template}");
    }
}

#[test]
fn what_is_missing_is_left_out_where_it_is_optional_and_a_fault_where_it_is_not() {
    let mut record = record(r#"{"a":{"b":[1,null]}}"#);
    for place in
        ["value:/a", "value:/a/b", "value:/a/b/1", "value:/x", "value:", "header:null", "header:x"]
    {
        assert_eq!(rendered(&format!("t:{{{place}?}}"), &record), Ok(None), "{place}");
        let fault = rendered(&format!("t:{{{place}}}"), &record).unwrap_err();
        assert!(fault.contains(place), "{fault}");
    }
    assert!(
        rendered("{header:x?}{header:y}", &record).is_err(),
        "a required one after an optional one"
    );
    assert!(rendered("{header:bad?}", &record).is_err(), "bytes that are no text are not missing");
    record.key = None;
    record.value = None;
    record.timestamp_ms = -1;
    for place in ["key", "value:/a", "timestamp"] {
        assert_eq!(rendered(&format!("{{{place}?}}"), &record), Ok(None), "{place}");
    }
}

#[test]
fn a_value_that_is_not_json_is_a_fault_only_for_templates_that_read_it() {
    let record = record("{");
    assert!(rendered("{value:/a?}", &record).is_err());
    assert_eq!(rendered("{key}", &record), Ok(Some("k-1".into())));
}

#[test]
fn a_text_that_is_not_unicode_is_a_fault() {
    let fault = rendered("{value:/a}", &record(r#"{"a":"\ud800"}"#)).unwrap_err();
    assert!(fault.contains("value:/a"), "{fault}");
}

#[test]
fn a_template_that_is_none_is_refused_with_the_place() {
    for (template, word) in [
        ("", "empty"),
        ("a}", "byte 1"),
        ("ab{key", "byte 2"),
        ("ab{k{ey}", "byte 2"),
        ("ab{kye}", "byte 3"),
        ("{header:}", "byte 1"),
        ("{value:a}", "byte 7"),
        ("{value:/a/~}", "byte 10"),
        ("{}", "byte 1"),
        ("a\tb{key}", "control"),
        ("{key:x}", "byte 1"),
    ] {
        let fault = Template::parse(template).unwrap_err().to_string();
        assert!(fault.contains(word), "{template}: {fault}");
    }
    assert!(Template::parse(&"x".repeat(256)).unwrap_err().to_string().contains("255"));
    assert_eq!(Template::parse("{value:/a}").unwrap().as_str(), "{value:/a}");
}

proptest! {
    #[test]
    fn any_text_is_a_template_when_its_braces_are_doubled(text in "[^\\p{Cc}]{1,60}") {
        let doubled = text.replace('{', "{{").replace('}', "}}");
        prop_assert_eq!(rendered(&doubled, &record("1")), Ok(Some(text)));
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text: String, braces in "[{}a:/?~]{0,12}") {
        for text in [text, braces] {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(template.as_str(), text);
            }
        }
    }
}
