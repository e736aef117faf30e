//! The messages of a client by their tags.

pub(crate) use super::fields::RequestFault;

use super::fields::{self, Parsed};
use super::{
    Auth, Fetch, FetchAmount, Hello, NotificationFilter, PackedMap, Route, Routing, Run, TextList,
    TransactionSettings, tag,
};
use crate::packstream::{Item, Reader};
use crate::version::Version;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Hello(Box<Hello>),
    Logon(Auth),
    Logoff,
    Telemetry,
    Route(Box<Route>),
    Begin(Box<TransactionSettings>),
    Run(Box<Run>),
    Pull(Fetch),
    Discard(Fetch),
    Commit,
    Rollback,
    Reset,
    Goodbye,
}

impl Request {
    /// Its name, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Request::Hello(_) => "HELLO",
            Request::Logon(_) => "LOGON",
            Request::Logoff => "LOGOFF",
            Request::Telemetry => "TELEMETRY",
            Request::Route(_) => "ROUTE",
            Request::Begin(_) => "BEGIN",
            Request::Run(_) => "RUN",
            Request::Pull(_) => "PULL",
            Request::Discard(_) => "DISCARD",
            Request::Commit => "COMMIT",
            Request::Rollback => "ROLLBACK",
            Request::Reset => "RESET",
            Request::Goodbye => "GOODBYE",
        }
    }

    /// Reads a message, and keeps it if that saves copying parameters.
    pub(crate) fn parse(message: Vec<u8>, version: Version) -> Parsed<Request> {
        let mut reader = Reader::new(&message);
        let Item::Struct { tag, fields } = reader.item()? else {
            return Err(RequestFault::Unknown(None, 0));
        };
        let request = match (tag, fields) {
            (tag::RUN, 3) => {
                let (text, start, end) = statement(&mut reader)?;
                let settings = TransactionSettings::read(&mut reader)?;
                expect_end(&reader)?;
                let parameters = if start == end {
                    PackedMap::empty()
                } else {
                    PackedMap::within(message, start, end)
                };
                return Ok(Request::Run(Box::new(Run { text, parameters, settings })));
            }
            (tag::HELLO, 1) => Request::Hello(Box::new(hello(&mut reader, version)?)),
            (tag::LOGON, 1) if version.has_logon() => Request::Logon(logon(&mut reader)?),
            (tag::LOGOFF, 0) if version.has_logon() => Request::Logoff,
            (tag::TELEMETRY, 1) if version.has_telemetry() => telemetry(&mut reader)?,
            (tag::ROUTE, 3) => Request::Route(Box::new(route(&mut reader)?)),
            (tag::BEGIN, 1) => Request::Begin(Box::new(TransactionSettings::read(&mut reader)?)),
            (tag::PULL, 1) => Request::Pull(fetch(&mut reader)?),
            (tag::DISCARD, 1) => Request::Discard(fetch(&mut reader)?),
            (tag::COMMIT, 0) => Request::Commit,
            (tag::ROLLBACK, 0) => Request::Rollback,
            (tag::RESET, 0) => Request::Reset,
            (tag::GOODBYE, 0) => Request::Goodbye,
            _ => return Err(RequestFault::Unknown(Some(tag), fields)),
        };
        expect_end(&reader)?;
        Ok(request)
    }
}

/// Nothing is behind the structure of a message.
fn expect_end(reader: &Reader<'_>) -> Parsed<()> {
    if reader.is_at_end() { Ok(()) } else { Err(RequestFault::Unknown(None, 0)) }
}

/// A statement's text, and where its parameters begin and end; both are 0 if there are none.
fn statement(reader: &mut Reader<'_>) -> Parsed<(String, usize, usize)> {
    let text = fields::text(reader, "query")?.to_owned();
    let start = reader.at();
    let parameters = fields::map_bytes(reader, "parameters")?;
    // `null` is one byte as well, and no map.
    if parameters.len() == 1 { Ok((text, 0, 0)) } else { Ok((text, start, reader.at())) }
}

fn hello(reader: &mut Reader<'_>, version: Version) -> Parsed<Hello> {
    let (mut auth, mut user_agent) = (Credentials::default(), None);
    let (mut bolt_agent, mut routing) = (None, None);
    let (mut notifications, mut wants_utc) = (NotificationFilter::default(), false);
    fields::members(reader, "extra", |key, reader| {
        match key {
            "user_agent" => user_agent = fields::text_or_null(reader, "user_agent")?,
            "bolt_agent" => bolt_agent = product(reader)?,
            "routing" => routing = read_routing(reader)?,
            "patch_bolt" => {
                let patches = fields::texts(reader, "patch_bolt")?;
                wants_utc = patches.iter().any(|patch| patch == "utc");
            }
            _ if notifications.read(key, reader)? => {}
            _ if !version.has_logon() && auth.read(key, reader)? => {}
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let auth = (!version.has_logon()).then(|| auth.finish());
    let user_agent = user_agent.unwrap_or_default();
    Ok(Hello { user_agent, bolt_agent, routing, auth, notifications, wants_utc })
}

/// The name of the driver.
fn product(reader: &mut Reader<'_>) -> Parsed<Option<String>> {
    let mut product = None;
    fields::members(reader, "bolt_agent", |key, reader| {
        match key {
            "product" => product = fields::text_or_null(reader, "product")?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(product)
}

/// `null` is a client that wants no routing; a map, also an empty one, a client that does.
fn read_routing(reader: &mut Reader<'_>) -> Parsed<Option<Routing>> {
    let mut ahead = reader.clone();
    if ahead.item()? == Item::Null {
        *reader = ahead;
        return Ok(None);
    }
    let mut routing = Routing::default();
    fields::members(reader, "routing", |key, reader| {
        match key {
            "address" => routing.address = fields::text_or_null(reader, "address")?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Some(routing))
}

/// Credentials as they are read.
#[derive(Default)]
struct Credentials {
    scheme: Option<String>,
    principal: Option<String>,
    credentials: Option<String>,
}

impl Credentials {
    /// Reads a member if it is one of credentials; `false`: it is not, and nothing is read.
    fn read(&mut self, key: &str, reader: &mut Reader<'_>) -> Parsed<bool> {
        match key {
            "scheme" => self.scheme = fields::text_or_null(reader, "scheme")?,
            "principal" => self.principal = fields::text_or_null(reader, "principal")?,
            "credentials" => self.credentials = fields::text_or_null(reader, "credentials")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self) -> Auth {
        Auth {
            scheme: self.scheme.unwrap_or_else(|| "none".to_owned()),
            principal: self.principal.unwrap_or_default(),
            credentials: self.credentials.unwrap_or_default(),
        }
    }
}

fn logon(reader: &mut Reader<'_>) -> Parsed<Auth> {
    let mut auth = Credentials::default();
    fields::members(reader, "auth", |key, reader| {
        if !auth.read(key, reader)? {
            reader.skip()?;
        }
        Ok(())
    })?;
    Ok(auth.finish())
}

fn telemetry(reader: &mut Reader<'_>) -> Parsed<Request> {
    match reader.item()? {
        Item::Int(0..=3) => Ok(Request::Telemetry),
        _ => Err(RequestFault::Invalid { field: "api", expected: "an integer from 0 to 3" }),
    }
}

fn route(reader: &mut Reader<'_>) -> Parsed<Route> {
    let routing = read_routing(reader)?.unwrap_or_default();
    let bookmarks: TextList = fields::texts(reader, "bookmarks")?;
    let (mut db, mut imp_user) = (None, None);
    fields::members(reader, "extra", |key, reader| {
        match key {
            "db" => db = fields::text_or_null(reader, "db")?,
            "imp_user" => imp_user = fields::text_or_null(reader, "imp_user")?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(Route { routing, bookmarks, db, imp_user })
}

fn fetch(reader: &mut Reader<'_>) -> Parsed<Fetch> {
    const N: (&str, &str) = ("n", "-1, for all rows, or an integer of 1 or more");
    let (mut amount, mut qid) = (None, -1);
    fields::members(reader, "extra", |key, reader| {
        match key {
            "n" => amount = fields::int_or_null(reader, N.0, (-1, N.1))?,
            "qid" => {
                let range = (-1, "-1, for the last result, or the number of a result");
                qid = fields::int_or_null(reader, "qid", range)?.unwrap_or(-1);
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let amount = match amount {
        Some(-1) => FetchAmount::All,
        Some(rows @ 1..) => FetchAmount::Rows(rows.cast_unsigned()),
        _ => return Err(RequestFault::Invalid { field: N.0, expected: N.1 }),
    };
    Ok(Fetch { amount, qid })
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
