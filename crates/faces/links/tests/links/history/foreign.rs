//! Events appended by other programs: their own links, and invalid events.

use super::shell::created_by_others;
use super::*;

impl World {
    pub(super) fn foreign(&mut self, kind: u8, pick: u8, number: u8) -> Event {
        let code = self.pick(pick);
        let near = u64::from(number);
        match kind {
            0 => created_by_others(code, &json!({})),
            1 => created_by_others(code, &json!({"number": near, "chosen": "automatic"})),
            2 => {
                let huge = [u64::MAX, u64::MAX - 1, 1 << 59, 1 << 20, 839_299_365_868_340_199];
                created_by_others(code, &json!({"number": huge[usize::from(number) % 5]}))
            }
            3 => {
                // A code that this process has assigned or will assign: its counter continues from
                // there.
                let code = self.numbered(near % 50);
                let number = Permutation::new(self.oracle.key.unwrap_or_default()).number(code);
                self.counted = number.map_or(0, |number| number + 1);
                created_by_others(code, &json!({"number": number, "chosen": "automatic"}))
            }
            4 => created_by_others(
                code,
                &json!({"url": BAD_URLS[usize::from(number) % BAD_URLS.len()]}),
            ),
            5 => {
                let tags =
                    [json!(["a", "a"]), json!([""]), json!(["a\u{7}"]), json!(null), json!(7)];
                created_by_others(code, &json!({"tags": tags[usize::from(number) % 5]}))
            }
            6 => {
                let numbers = [json!(-1), json!(1.5), json!(1e30), json!("7"), json!(null)];
                let name = if number & 1 == 0 { "number" } else { "expires_at" };
                created_by_others(code, &json!({ name: numbers[usize::from(number / 2) % 5] }))
            }
            7 => created_by_others(
                code,
                &json!({"expires_at": u64::MAX - near % 3, "more": [1], "tags": ["größe", "é"]}),
            ),
            8 => {
                let mut event = created_by_others(code, &json!({"chosen": "deterministic"}));
                let odd = ["link:no-code", "link:", "link:B2", "link"][usize::from(number) % 4];
                event.tags.retain(|tag| number & 1 == 0 && tag != odd);
                event.tags.insert(0, odd.to_owned());
                event
            }
            9..=12 => self.foreign_change(code, number),
            13 | 14 => Event::json("LinkDeleted", &[&format!("link:{code}")], "rubbish"),
            15 | 16 => foreign_opening(number),
            17..=20 => foreign_click(code, number),
            21 => Event::json("LinkClicked", &[&format!("link:{code}")], CLICK),
            22 => Event::json("SomethingElse", &[&format!("link:{code}"), "links"], "{}"),
            _ => {
                let event_type =
                    ["LinkCreated", "LinkChanged", "LinkClicked"][usize::from(number) % 3];
                let texts = ["", "{", "null", "7", "\"x\"", "{}", "{\"url\":\"http://a.example/"];
                let (link, clicked) = (format!("link:{code}"), format!("clicked:{code}"));
                Event::json(event_type, &[&link, &clicked], texts[usize::from(number / 3) % 7])
            }
        }
    }

    fn foreign_change(&self, code: Code, number: u8) -> Event {
        let data = [
            json!({"url": "https://changed.example/ß"}),
            json!({"url": "nonsense", "enabled": false}),
            json!({"url": null, "enabled": null, "tags": null}),
            json!({"enabled": false}),
            json!({"enabled": true, "expires_at": null}),
            json!({"enabled": "yes", "url": "https://no.example/"}),
            json!({"expires_at": self.journal.now_us + u64::from(number)}),
            json!({"expires_at": u64::MAX}),
            json!({"expires_at": -5, "tags": ["a"]}),
            json!({"tags": ["a", "a"], "enabled": false}),
            json!({"tags": ["é", "b"], "unknown": {}}),
            json!({}),
        ];
        let data = data[usize::from(number) % data.len()].to_string();
        Event::json("LinkChanged", &["more", &format!("link:{code}")], &data)
    }
}

const CLICK: &str = r#"{"visitor":"0123456789abcdef","agent":"Firefox"}"#;

fn foreign_opening(number: u8) -> Event {
    let key = format!("{:032X}", u128::from(mixed(number.into())));
    let data = json!({ "key": key }).to_string();
    match number % 4 {
        0 => Event::json("LinksOpened", &[], &data),
        1 => Event::json("LinksOpened", &["linked"], &data),
        2 => Event::json(
            "LinksOpened",
            &["more", "links"],
            ["rubbish", "{}", "{\"key\":\"7\"}"][usize::from(number / 4) % 3],
        ),
        _ => Event::json("LinksOpened", &["links"], &data),
    }
}

fn foreign_click(code: Code, number: u8) -> Event {
    let data = [
        json!({"visitor": "0123456789ABCDEF", "agent": "Firefox"}),
        json!({"visitor": "+123456789abcdef", "agent": "Nobody knows"}),
        json!({"visitor": "", "agent": "", "referrer": null}),
        json!({"visitor": "00000000000000000", "agent": "Other", "referrer": ""}),
        json!({"visitor": "x", "agent": "curl", "bot": false, "more": 1}),
        json!({"visitor": "x", "agent": "curl", "bot": null}),
        json!({"visitor": "x", "agent": 7}),
        json!({"visitor": "ffffffffffffffff", "agent": "Chrome", "referrer": 7}),
        json!({"visitor": "ffffffffffffffff", "agent": "Chrome", "referrer": "é\u{1}".repeat(90)}),
        json!({"visitor": "0000000000000000", "agent": "Fire\"\\fox\u{e9}", "referrer": "a\"b"}),
        json!({"agent": "Chrome"}),
        json!({"visitor": "0000000000000001", "agent": "Safari", "bot": true}),
    ];
    let data = data[usize::from(number) % data.len()].to_string();
    let data = if number & 16 == 0 {
        data
    } else {
        format!(" {} ", data.replace(',', " ,\n ").replace(':', " : "))
    };
    Event::json("LinkClicked", &[&format!("clicked:{code}")], &data)
}
