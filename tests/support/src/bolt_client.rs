//! A Bolt client of our own: every byte of it can be chosen, which no driver allows. It shares no
//! code with the server.

use serde_json::{Value as Json, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A value of PackStream.
#[derive(Debug, Clone, PartialEq)]
pub enum Packed {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    Text(String),
    List(Vec<Packed>),
    Map(Vec<(String, Packed)>),
    Struct(u8, Vec<Packed>),
}

pub const HELLO: u8 = 0x01;
pub const RESET: u8 = 0x0F;
pub const RUN: u8 = 0x10;
pub const BEGIN: u8 = 0x11;
pub const COMMIT: u8 = 0x12;
pub const ROLLBACK: u8 = 0x13;
pub const DISCARD: u8 = 0x2F;
pub const PULL: u8 = 0x3F;
pub const ROUTE: u8 = 0x66;
pub const LOGON: u8 = 0x6A;
pub const SUCCESS: u8 = 0x70;
pub const RECORD: u8 = 0x71;
pub const IGNORED: u8 = 0x7E;
pub const FAILURE: u8 = 0x7F;

impl From<&Json> for Packed {
    fn from(json: &Json) -> Packed {
        match json {
            Json::Null => Packed::Null,
            Json::Bool(truth) => Packed::Bool(*truth),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Packed::Int(int),
                None => Packed::Float(number.as_f64().expect("a float")),
            },
            Json::String(text) => Packed::Text(text.clone()),
            Json::Array(items) => Packed::List(items.iter().map(Packed::from).collect()),
            Json::Object(entries) => Packed::Map(
                entries.iter().map(|(key, value)| (key.clone(), value.into())).collect(),
            ),
        }
    }
}

impl Packed {
    fn header(out: &mut Vec<u8>, (tiny, wide): (u8, u8), length: usize) {
        match length {
            0..16 => out.push(tiny | length as u8),
            _ => {
                out.push(wide + 2);
                out.extend_from_slice(&(length as u32).to_be_bytes());
            }
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Packed::Null => out.push(0xC0),
            Packed::Bool(truth) => out.push(0xC2 + u8::from(*truth)),
            Packed::Int(int) => {
                out.push(0xCB);
                out.extend_from_slice(&int.to_be_bytes());
            }
            Packed::Float(float) => {
                out.push(0xC1);
                out.extend_from_slice(&float.to_be_bytes());
            }
            Packed::Bytes(bytes) => {
                out.push(0xCE);
                out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                out.extend_from_slice(bytes);
            }
            Packed::Text(text) => {
                Packed::header(out, (0x80, 0xD0), text.len());
                out.extend_from_slice(text.as_bytes());
            }
            Packed::List(items) => {
                Packed::header(out, (0x90, 0xD4), items.len());
                items.iter().for_each(|item| item.write(out));
            }
            Packed::Map(entries) => {
                Packed::header(out, (0xA0, 0xD8), entries.len());
                for (key, value) in entries {
                    Packed::Text(key.clone()).write(out);
                    value.write(out);
                }
            }
            Packed::Struct(tag, fields) => {
                out.extend_from_slice(&[0xB0 | fields.len() as u8, *tag]);
                fields.iter().for_each(|field| field.write(out));
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Packed {
        fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
            let (taken, rest) = bytes.split_at(count);
            *bytes = rest;
            taken
        }
        fn size(bytes: &mut &[u8], width: u8) -> usize {
            take(bytes, 1 << width).iter().fold(0, |size, byte| size << 8 | usize::from(*byte))
        }
        let text = |bytes: &mut &[u8], length| {
            Packed::Text(String::from_utf8(take(bytes, length).to_vec()).expect("UTF-8"))
        };
        let items = |bytes: &mut &[u8], count: usize| -> Vec<Packed> {
            (0..count).map(|_| Packed::read(bytes)).collect()
        };
        let entries = |bytes: &mut &[u8], count: usize| -> Packed {
            let entry = |_| {
                let Packed::Text(key) = Packed::read(bytes) else { panic!("a key is no text") };
                (key, Packed::read(bytes))
            };
            Packed::Map((0..count).map(entry).collect())
        };
        let marker = take(bytes, 1)[0];
        let low = usize::from(marker & 0x0F);
        match marker {
            0x00..=0x7F | 0xF0..=0xFF => Packed::Int((marker as i8).into()),
            0x80..=0x8F => text(bytes, low),
            0x90..=0x9F => Packed::List(items(bytes, low)),
            0xA0..=0xAF => entries(bytes, low),
            0xB0..=0xBF => {
                let tag = take(bytes, 1)[0];
                Packed::Struct(tag, items(bytes, low))
            }
            0xC0 => Packed::Null,
            0xC1 => Packed::Float(f64::from_be_bytes(take(bytes, 8).try_into().unwrap())),
            0xC2 | 0xC3 => Packed::Bool(marker == 0xC3),
            0xC8..=0xCB => {
                let width = 1 << (marker - 0xC8);
                let taken = take(bytes, width);
                let start = if taken[0] & 0x80 == 0 { 0_i64 } else { -1 };
                Packed::Int(taken.iter().fold(start, |int, byte| int << 8 | i64::from(*byte)))
            }
            0xCC..=0xCE => {
                let length = size(bytes, marker - 0xCC);
                Packed::Bytes(take(bytes, length).to_vec())
            }
            0xD0..=0xD2 => {
                let length = size(bytes, marker - 0xD0);
                text(bytes, length)
            }
            0xD4..=0xD6 => {
                let count = size(bytes, marker - 0xD4);
                Packed::List(items(bytes, count))
            }
            0xD8..=0xDA => {
                let count = size(bytes, marker - 0xD8);
                entries(bytes, count)
            }
            _ => panic!("{marker:#x} begins no value"),
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> &Packed {
        let Packed::Map(entries) = self else { panic!("{self:?} is no map") };
        entries.iter().find(|(known, _)| known == key).map_or(&Packed::Null, |(_, value)| value)
    }

    pub fn text(&self) -> &str {
        let Packed::Text(text) = self else { panic!("{self:?} is no text") };
        text
    }

    pub fn int(&self) -> i64 {
        let Packed::Int(int) = self else { panic!("{self:?} is no integer") };
        *int
    }
}

/// A message: its tag and its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub tag: u8,
    pub fields: Vec<Packed>,
}

/// A message in one chunk, or several.
pub fn framed(tag: u8, fields: &[Json]) -> Vec<u8> {
    let mut message = Vec::new();
    Packed::Struct(tag, fields.iter().map(Packed::from).collect()).write(&mut message);
    chunked(&message)
}

pub fn chunked(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for chunk in message.chunks(0xFFFF) {
        out.extend_from_slice(&(chunk.len() as u16).to_be_bytes());
        out.extend_from_slice(chunk);
    }
    out.extend_from_slice(&[0, 0]);
    out
}

/// A connection.
pub struct BoltClient {
    pub stream: TcpStream,
}

impl BoltClient {
    /// A connection that has agreed on this version and nothing else.
    pub fn open(address: SocketAddr, (major, minor): (u8, u8)) -> BoltClient {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut offer = vec![0x60, 0x60, 0xB0, 0x17, 0, 0, minor, major];
        offer.resize(20, 0);
        stream.write_all(&offer).unwrap();
        let mut chosen = [0; 4];
        stream.read_exact(&mut chosen).unwrap();
        assert_eq!(chosen, [0, 0, minor, major]);
        BoltClient { stream }
    }

    /// One that may send statements, to a server without accounts.
    pub fn ready(address: SocketAddr, version: (u8, u8)) -> BoltClient {
        let mut client = BoltClient::open(address, version);
        let greeting = json!({"user_agent": "test/1.0", "scheme": "none"});
        client.ask(HELLO, &[greeting]).success();
        if version >= (5, 1) {
            client.ask(LOGON, &[json!({"scheme": "none"})]).success();
        }
        client
    }

    pub fn send(&mut self, tag: u8, fields: &[Json]) {
        self.stream.write_all(&framed(tag, fields)).unwrap();
    }

    pub fn receive(&mut self) -> io::Result<Message> {
        let mut message = Vec::new();
        loop {
            let mut header = [0; 2];
            self.stream.read_exact(&mut header)?;
            let length = usize::from(u16::from_be_bytes(header));
            if length == 0 && !message.is_empty() {
                break;
            }
            let begun = message.len();
            message.resize(begun + length, 0);
            self.stream.read_exact(&mut message[begun..])?;
        }
        let mut rest = &message[..];
        let Packed::Struct(tag, fields) = Packed::read(&mut rest) else { panic!("no structure") };
        assert!(rest.is_empty(), "bytes behind a message");
        Ok(Message { tag, fields })
    }

    pub fn ask(&mut self, tag: u8, fields: &[Json]) -> Message {
        self.send(tag, fields);
        self.receive().expect("an answer")
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }

    /// Runs a statement as a transaction of its own, or in the open one: what its end told, and its
    /// rows; or the failure's code, after a reset.
    pub fn run(&mut self, text: &str, parameters: Json) -> Result<Rows, String> {
        self.send(RUN, &[json!(text), parameters, json!({})]);
        self.send(PULL, &[json!({"n": -1})]);
        let begun = self.receive().expect("an answer");
        if begun.tag == FAILURE {
            let code = begun.code();
            assert_eq!(self.receive().expect("an answer").tag, IGNORED);
            self.ask(RESET, &[]).success();
            return Err(code);
        }
        let Packed::List(fields) = begun.success().get("fields").clone() else { panic!("fields") };
        let fields = fields.iter().map(|field| field.text().to_owned()).collect();
        let mut rows = Vec::new();
        loop {
            let mut message = self.receive().expect("an answer");
            match message.tag {
                RECORD => {
                    let Packed::List(row) = message.fields.remove(0) else { panic!("no row") };
                    rows.push(row);
                }
                SUCCESS => return Ok(Rows { fields, rows, summary: message.success() }),
                _ => {
                    let code = message.code();
                    self.ask(RESET, &[]).success();
                    return Err(code);
                }
            }
        }
    }

    /// The only value of the only row.
    pub fn value(&mut self, text: &str) -> Packed {
        let rows = self.run(text, json!({})).expect("rows").rows;
        let [row] = &rows[..] else { panic!("{rows:?}") };
        row[0].clone()
    }
}

/// The result of a statement.
#[derive(Debug)]
pub struct Rows {
    pub fields: Vec<String>,
    pub rows: Vec<Vec<Packed>>,
    pub summary: Packed,
}

impl Message {
    /// The metadata of a success.
    pub fn success(&self) -> Packed {
        assert_eq!(self.tag, SUCCESS, "{self:?}");
        self.fields[0].clone()
    }

    /// The code of a failure.
    pub fn code(&self) -> String {
        assert_eq!(self.tag, FAILURE, "{self:?}");
        let code = [self.fields[0].get("neo4j_code"), self.fields[0].get("code")];
        code.into_iter().find(|code| **code != Packed::Null).expect("a code").text().to_owned()
    }
}
