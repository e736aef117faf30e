//! The record of a visit, from its request.

use super::visitor::VisitorName;
use crate::view::{agent, referrer};
use wellspring_host::wire::json::push_string;

/// Header values about the visitor, as sent.
#[derive(Debug, Default)]
pub(crate) struct ClickHeaders<'a> {
    /// `User-Agent`, the first.
    pub(crate) agent: Option<&'a [u8]>,
    /// `Referer`, the first.
    pub(crate) referrer: Option<&'a [u8]>,
}

/// The record of a visit, without the visitor's name.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The event's data after the visitor's name.
    behind_name: Vec<u8>,
}

impl Visit {
    /// The record of a visit with these headers.
    pub(crate) fn of(told: &ClickHeaders<'_>) -> Visit {
        let agent = agent::family(told.agent.unwrap_or_default());
        let mut out = Vec::with_capacity(96);
        out.extend_from_slice(b"\",\"agent\":");
        push_string(&mut out, agent.family);
        if let Some(host) = told.referrer.and_then(referrer::host) {
            out.extend_from_slice(b",\"referrer\":");
            push_string(&mut out, &host);
        }
        if agent.bot {
            out.extend_from_slice(b",\"bot\":true");
        }
        out.push(b'}');
        Visit { behind_name: out }
    }

    /// Appends the data of the event, a JSON object, whatever the headers hold.
    #[inline]
    pub(crate) fn push_data(&self, visitor: &VisitorName, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"visitor\":\"");
        out.extend_from_slice(visitor);
        out.extend_from_slice(&self.behind_name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(told: &ClickHeaders<'_>) -> String {
        let mut out = Vec::new();
        Visit::of(told).push_data(b"0123456789abcdef", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_visit_is_recorded_by_family_and_host_and_no_more() {
        let firefox = b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
        let told = ClickHeaders {
            agent: Some(firefox),
            referrer: Some(b"https://News.example/secret?token=1"),
        };
        assert_eq!(
            data(&told),
            r#"{"visitor":"0123456789abcdef","agent":"Firefox","referrer":"news.example"}"#
        );
        let bot = ClickHeaders {
            agent: Some(
                b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            ),
            ..ClickHeaders::default()
        };
        let json: serde_json::Value = serde_json::from_str(&data(&bot)).unwrap();
        assert_eq!((&json["bot"], json.get("referrer")), (&true.into(), None));
    }

    proptest! {
        #[test]
        fn the_data_is_json_whatever_the_headers_hold(
            agent in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
            host in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
        ) {
            let referrer = host.map(|host| [b"https://", &host[..]].concat());
            let told = ClickHeaders { agent: agent.as_deref(), referrer: referrer.as_deref() };
            let json: serde_json::Value = serde_json::from_str(&data(&told)).unwrap();
            prop_assert_eq!(&json["visitor"], "0123456789abcdef");
            prop_assert!(json["agent"].is_string());
        }
    }
}
