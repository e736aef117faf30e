//! The account of a log, from `GET /v1/ingest` and from `/metrics`.

use crate::client::Client;
use crate::server::Server;
use wellspring_patience::Patience;

/// Events and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Amount {
    pub events: u64,
    pub bytes: u64,
}

impl Amount {
    fn plus(self, other: Amount) -> Amount {
        Amount { events: self.events + other.events, bytes: self.bytes + other.bytes }
    }

    fn within(self, limit: Amount) -> bool {
        self.events <= limit.events && self.bytes <= limit.bytes
    }
}

/// What both sources report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account {
    pub accepted: Amount,
    pub stored: Amount,
    pub shed: Amount,
    pub dropped: Amount,
    pub lost_possible: Amount,
}

impl Account {
    /// From `GET /v1/ingest` of this log, together with the limit in bytes of its partitions.
    /// Checks the fields that only this document has.
    #[track_caller]
    pub fn ask(client: &mut Client, log: &str) -> (Account, u64) {
        let document = client.get(&format!("/v1/logs/{log}/ingest")).unwrap().expect(200);
        let amount = |name: &str| {
            let number = |unit: &str| document[name][unit].as_u64().unwrap();
            Amount { events: number("events"), bytes: number("bytes") }
        };
        let account = Account {
            accepted: amount("accepted"),
            stored: amount("stored"),
            shed: amount("shed"),
            dropped: amount("dropped"),
            lost_possible: amount("lost_possible"),
        };
        assert_eq!(amount("in_flight"), account.lost_possible, "{document}");
        let number = |name: &str| document[name].as_u64().unwrap();
        account.check();
        (account, number("partitions") * number("partition_bytes"))
    }

    /// From `/metrics`.
    #[track_caller]
    pub fn scrape(client: &mut Client, log: &str) -> Account {
        let text = client.get("/metrics").unwrap().text();
        let amount = |name: &str, suffix: &str| {
            let number = |unit: &str| {
                metric(&text, &format!("wellspring_ingest_{name}_{unit}{suffix}{{log=\"{log}\"}}"))
            };
            Amount { events: number("events"), bytes: number("bytes") }
        };
        let account = Account {
            accepted: amount("accepted", "_total"),
            stored: amount("stored", "_total"),
            shed: amount("shed", "_total"),
            dropped: amount("dropped", "_total"),
            lost_possible: amount("lost_possible", ""),
        };
        account.check();
        account
    }

    #[track_caller]
    fn check(&self) {
        assert!(self.stored.within(self.accepted), "{self:?}");
        let known = self.stored.plus(self.lost_possible).plus(self.dropped);
        assert_eq!(known, self.accepted, "{self:?} does not add up");
    }

    /// Checks that no counter has gone back.
    #[track_caller]
    pub fn check_after(&self, earlier: &Account) {
        for (name, was, is) in [
            ("accepted", earlier.accepted, self.accepted),
            ("stored", earlier.stored, self.stored),
            ("shed", earlier.shed, self.shed),
            ("dropped", earlier.dropped, self.dropped),
        ] {
            assert!(was.within(is), "{name} went back from {was:?} to {is:?}");
        }
    }

    /// The account once nothing is in flight.
    #[track_caller]
    pub fn at_rest(server: &Server, log: &str) -> Account {
        let mut client = server.client().patient();
        let mut patience = Patience::new();
        loop {
            let (account, _) = Account::ask(&mut client, log);
            if account.lost_possible == Amount::default() {
                return account;
            }
            patience.pause(format_args!("still in flight: {account:?}"));
        }
    }
}

/// The value of a metric, given its name and labels.
#[track_caller]
pub fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
}

/// How many events of a type a log has.
#[track_caller]
pub fn count_of(server: &Server, log: &str, event_type: &str) -> u64 {
    let document = server.client().get(&format!("/v1/logs/{log}/types")).unwrap().expect(200);
    let types = document["types"].as_array().unwrap();
    let found = types.iter().find(|entry| entry["type"] == event_type);
    found.map_or(0, |entry| entry["count"].as_u64().unwrap())
}
