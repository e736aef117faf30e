//! Parsing the bodies of links' requests.

use crate::view::{Change, Code, Create, MAX_TAG_BYTES, MAX_TAGS, Naming};
use wellspring_host::clock::MOMENT_RULE;
use wellspring_host::clock::parse_rfc3339;
use wellspring_host::wire::json::{Cursor, Fault, FaultKind, ReadResult};
use wellspring_host::wire::json::{document, once, read_text, rule, unknown};
use wellspring_host::wire::problem::{self, Problem};

/// Largest body about one link, in bytes: room for the longest URL with every character escaped.
pub(super) const MAX_BODY_BYTES: usize = 64 << 10;
/// Longest lifetime that may be requested, in s: a hundred years.
const MAX_LIFE_S: u64 = 3_155_760_000;

/// A link to create, independent of the time of the request: what depends on the time is checked
/// later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkRequest {
    /// The link, except for a lifetime counted from now.
    link: Create,
    /// Its lifetime, in s.
    life_s: Option<u64>,
}

impl LinkRequest {
    /// How its code is chosen.
    pub(super) fn naming(&self) -> Naming {
        self.link.naming
    }

    /// Its target.
    pub(super) fn url(&self) -> &str {
        &self.link.url
    }

    /// The command if it is executed at `now_us`, in µs since 1970 UTC.
    ///
    /// # Errors
    /// The link would have expired already.
    pub(super) fn at(&self, now_us: u64) -> Result<Create, Box<Problem>> {
        let mut link = self.link.clone();
        if link.expires_at_us.is_some_and(|moment_us| moment_us <= now_us) {
            return Err(problem::INVALID.because("expires_at is in the past").field("expires_at"));
        }
        if let Some(seconds) = self.life_s {
            link.expires_at_us = Some(now_us + seconds * 1_000_000);
        }
        Ok(link)
    }
}

/// Parses the body of `POST /api/urls`. A missing URL is empty; the URL is not checked here.
pub(super) fn read_create(body: &[u8]) -> ReadResult<LinkRequest> {
    const KNOWN: &str = "url, alias, deterministic, expires_at, expires_in_s, max_clicks, tags";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut url, mut alias, mut deterministic) = (None, None, None);
        let (mut expires_at_us, mut expires_in_s) = (None, None);
        let (mut max_clicks, mut tags) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "url" | "alias" | "deterministic" | "expires_at" | "expires_in_s"
                | "max_clicks" | "tags"
                    if value.null()? =>
                {
                    Ok(())
                }
                "url" => once(&mut url, at, value.string()?.into_owned()),
                "alias" => once(&mut alias, at, read_alias(value)?),
                "deterministic" => once(&mut deterministic, at, value.boolean()?),
                "expires_at" => once(&mut expires_at_us, at, read_moment(value)?),
                "expires_in_s" => once(&mut expires_in_s, at, read_life(value)?),
                "max_clicks" => once(&mut max_clicks, at, read_max_clicks(value)?),
                "tags" => once(&mut tags, at, read_tags(value)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let beside = |field: &str, other: &str| {
            let kind =
                FaultKind::Rule(format!("cannot be combined with {other}; remove one of them"));
            Err(Fault::of(field, start, kind))
        };
        let naming = match (alias, deterministic.unwrap_or(false)) {
            (Some(_), true) => return beside("alias", "deterministic"),
            (Some(code), false) => Naming::Alias(code),
            (None, true) => Naming::Deterministic,
            (None, false) => Naming::Automatic,
        };
        if expires_at_us.is_some() && expires_in_s.is_some() {
            return beside("expires_in_s", "expires_at");
        }
        let (url, tags) = (url.unwrap_or_default(), tags.unwrap_or_default());
        let link = Create { url, naming, expires_at_us, max_clicks, tags, sealed: None };
        Ok(LinkRequest { link, life_s: expires_in_s })
    })
}

/// Parses the body of `PATCH /api/urls/{code}`.
pub(super) fn read_change(body: &[u8], code: Code) -> ReadResult<Change> {
    const KNOWN: &str = "url, enabled, expires_at, max_clicks, tags";
    document(body, |cursor| {
        let start = cursor.at();
        let (mut url, mut enabled, mut expires_at_us, mut tags) = (None, None, None, None);
        let mut max_clicks = None;
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "url" => once(&mut url, at, value.string()?.into_owned()),
                "enabled" => once(&mut enabled, at, value.boolean()?),
                "expires_at" => {
                    let moment_us = if value.null()? { None } else { Some(read_moment(value)?) };
                    once(&mut expires_at_us, at, moment_us)
                }
                "max_clicks" => {
                    let most = if value.null()? { None } else { Some(read_max_clicks(value)?) };
                    once(&mut max_clicks, at, most)
                }
                "tags" => once(&mut tags, at, read_tags(value)?),
                _ => unknown(at, KNOWN),
            }
        })?;
        let nothing = url.is_none()
            && enabled.is_none()
            && expires_at_us.is_none()
            && max_clicks.is_none()
            && tags.is_none();
        if nothing {
            return rule(start, format!("names nothing to change; known fields: {KNOWN}"));
        }
        Ok(Change { code, url, enabled, expires_at_us, max_clicks, tags, sealed: None })
    })
}

fn read_alias(value: &mut Cursor<'_>) -> ReadResult<Code> {
    let at = value.at();
    Code::check(value.string()?.as_bytes()).or_else(|fault| rule(at, fault.to_string()))
}

fn read_moment(value: &mut Cursor<'_>) -> ReadResult<u64> {
    let at = value.at();
    match parse_rfc3339(&value.string()?) {
        Some(moment_us) => Ok(moment_us),
        None => rule(at, MOMENT_RULE),
    }
}

fn read_life(value: &mut Cursor<'_>) -> ReadResult<u64> {
    let at = value.at();
    match value.u64()? {
        seconds @ 1..=MAX_LIFE_S => Ok(seconds),
        _ => rule(at, format!("must be from 1 to {MAX_LIFE_S}")),
    }
}

fn read_max_clicks(value: &mut Cursor<'_>) -> ReadResult<u32> {
    let at = value.at();
    match u32::try_from(value.u64()?) {
        Ok(most) if most > 0 => Ok(most),
        _ => rule(at, format!("must be from 1 to {}", u32::MAX)),
    }
}

fn read_tags(value: &mut Cursor<'_>) -> ReadResult<Vec<String>> {
    let at = value.at();
    let mut tags: Vec<String> = Vec::new();
    let mut too_many = false;
    let read = value.array(|_, value| {
        too_many = tags.len() == MAX_TAGS;
        if too_many {
            let detail = format!("contains more than {MAX_TAGS} tags");
            return Err(Fault::new(at, FaultKind::TooLarge { detail, limit: MAX_TAGS as u64 }));
        }
        let at = value.at();
        let tag = read_text(value, MAX_TAG_BYTES)?;
        if tags.contains(&tag) {
            return Err(Fault::new(
                at,
                FaultKind::Rule("repeats an earlier tag; remove it".into()),
            ));
        }
        tags.push(tag);
        Ok(())
    });
    read.map_err(|mut fault| {
        if too_many {
            fault.field.clear();
        }
        fault
    })?;
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wellspring_host::wire::problem::of_fault;

    const NOW_US: u64 = 1_795_225_406_000_000;

    fn create(body: &str) -> Create {
        read_create(body.as_bytes()).expect("a right body").at(NOW_US).expect("a right time")
    }

    fn refused(body: &str) -> (u16, String, String) {
        let asked = read_create(body.as_bytes()).map_err(|fault| of_fault(&fault, body.as_bytes()));
        let problem = asked.and_then(|asked| asked.at(NOW_US)).expect_err(body);
        (problem.kind.status, problem.field.clone().unwrap_or_default(), problem.detail)
    }

    #[test]
    fn a_link_needs_no_more_than_its_url() {
        let url = "http://example.com/test".to_owned();
        let plain = Create {
            url,
            naming: Naming::Automatic,
            expires_at_us: None,
            max_clicks: None,
            tags: Vec::new(),
            sealed: None,
        };
        assert_eq!(create(r#"{"url":"http://example.com/test"}"#), plain);
        let nulls = r#"{"url":"http://example.com/test","alias":null,"deterministic":null,
            "expires_at":null,"expires_in_s":null,"tags":null}"#;
        assert_eq!(create(nulls), plain);
        for none in ["{}", r#"{"url":""}"#, r#"{"url":null}"#] {
            assert_eq!(create(none).url, "");
        }
    }

    #[test]
    fn every_field_is_read() {
        let link = create(
            r#"{"url":"u","alias":"Ab1","expires_at":"2027-01-01","tags":["a","b c"],"deterministic":false}"#,
        );
        assert_eq!(link.naming, Naming::Alias(Code::parse(b"Ab1").unwrap()));
        assert_eq!(link.expires_at_us, Some(1_798_761_600_000_000));
        assert_eq!(link.tags, ["a", "b c"]);
        let link = create(r#"{"deterministic":true,"expires_in_s":60}"#);
        assert_eq!(link.naming, Naming::Deterministic);
        assert_eq!(link.expires_at_us, Some(NOW_US + 60_000_000));
    }

    #[test]
    fn the_field_at_fault_is_named() {
        let long = format!(r#"{{"tags":["{}"]}}"#, "x".repeat(MAX_TAG_BYTES + 1));
        let many: Vec<String> = (0..=MAX_TAGS).map(|n| format!("\"{n}\"")).collect();
        let many = format!(r#"{{"tags":[{}]}}"#, many.join(","));
        for (body, status, field) in [
            (r#"{"url":5}"#, 422, "url"),
            (r#"{"uri":"x"}"#, 422, "uri"),
            (r#"{"url":"a","url":"b"}"#, 422, "url"),
            (r#"{"alias":"a-b"}"#, 422, "alias"),
            (r#"{"alias":""}"#, 422, "alias"),
            (r#"{"alias":"12345678901"}"#, 422, "alias"),
            (r#"{"alias":7}"#, 422, "alias"),
            (r#"{"alias":"a","deterministic":true}"#, 422, "alias"),
            (r#"{"deterministic":"yes"}"#, 422, "deterministic"),
            (r#"{"expires_at":"soon"}"#, 422, "expires_at"),
            (r#"{"expires_at":"2026-11-20"}"#, 422, "expires_at"),
            (r#"{"expires_at":1}"#, 422, "expires_at"),
            (r#"{"expires_in_s":0}"#, 422, "expires_in_s"),
            (r#"{"expires_in_s":3155760001}"#, 422, "expires_in_s"),
            (r#"{"expires_in_s":-1}"#, 422, "expires_in_s"),
            (r#"{"expires_in_s":1,"expires_at":"2027-01-01"}"#, 422, "expires_in_s"),
            (r#"{"max_clicks":0}"#, 422, "max_clicks"),
            (r#"{"max_clicks":4294967296}"#, 422, "max_clicks"),
            (r#"{"max_clicks":"3"}"#, 422, "max_clicks"),
            (r#"{"tags":"a"}"#, 422, "tags"),
            (r#"{"tags":["a",1]}"#, 422, "tags[1]"),
            (r#"{"tags":["a","b","a"]}"#, 422, "tags[2]"),
            (r#"{"tags":[""]}"#, 422, "tags[0]"),
            (r#"{"tags":["a\nb"]}"#, 422, "tags[0]"),
            (long.as_str(), 413, "tags[0]"),
            (many.as_str(), 413, "tags"),
            ("[]", 422, ""),
            ("{\"url\":", 400, ""),
        ] {
            let (found, name, detail) = refused(body);
            assert_eq!((found, name.as_str()), (status, field), "{body}: {detail}");
        }
    }

    #[test]
    fn a_change_tells_never_from_not_changed() {
        let code = Code::parse(b"Yci").unwrap();
        let change = |body: &str| read_change(body.as_bytes(), code).expect(body);
        let nothing = Change {
            code,
            url: None,
            enabled: None,
            expires_at_us: None,
            max_clicks: None,
            tags: None,
            sealed: None,
        };
        let never = change(r#"{"expires_at":null}"#);
        assert_eq!(never, Change { expires_at_us: Some(None), ..nothing.clone() });
        let past = change(r#"{"expires_at":"1970-01-01"}"#);
        assert_eq!(past.expires_at_us, Some(Some(0)));
        let all = change(r#"{"url":"u","enabled":false,"tags":[]}"#);
        let (url, enabled, tags) = (Some("u".to_owned()), Some(false), Some(Vec::new()));
        assert_eq!(all, Change { url, enabled, tags, ..nothing });
        for bad in ["{}", r#"{"alias":"a"}"#, r#"{"enabled":null}"#, r#"{"url":null}"#, ""] {
            assert!(read_change(bad.as_bytes(), code).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_read_or_refused(
            body in r#"(\{|"|url|alias|tags|expires_at|expires_in_s|deterministic|:|,|\[|\]|\}|null|true|12|a-z|\\|\PC){0,24}"#,
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let code = Code::parse(b"Yci").expect("a code");
            for body in [body.as_bytes(), &bytes] {
                if let Some(create) = read_create(body).ok().and_then(|asked| asked.at(NOW_US).ok()) {
                    prop_assert!(create.tags.len() <= MAX_TAGS);
                    prop_assert!(create.expires_at_us.is_none_or(|moment_us| moment_us > NOW_US));
                }
                let _ = read_change(body, code);
            }
        }
    }
}
