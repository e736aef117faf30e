//! Users of a link shortener as load tests simulate them: of sixteen requests one is a health
//! check, three create a link, ten follow one and two read one. Each user records the answers.

use crate::client::{Answer, Client};
use crate::numbered::Coins;
use crate::shortener::{PATIENTLY, code_of};
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// A link, and how often it was followed.
#[derive(Debug)]
pub struct Link {
    pub code: String,
    pub url: String,
    sent: AtomicU64,
    answered: AtomicU64,
}

impl Link {
    pub fn new(code: String, url: String, clicks: u64) -> Arc<Link> {
        Arc::new(Link { code, url, sent: clicks.into(), answered: clicks.into() })
    }
}

/// Links shared by all users.
#[derive(Default)]
pub struct KnownLinks(RwLock<Vec<Arc<Link>>>);

impl KnownLinks {
    pub fn of(links: Vec<Arc<Link>>) -> KnownLinks {
        KnownLinks(RwLock::new(links))
    }

    fn any(&self, coins: &mut Coins) -> Option<Arc<Link>> {
        let links = self.0.read().unwrap();
        // A few are followed often, most rarely.
        let most = 1 + coins.below(links.len().max(1) as u64);
        links.get(coins.below(most) as usize).cloned()
    }
}

/// How a user connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// One for everything; the lean loop hands it over at the first request it does not serve.
    One,
    /// One for following links, one for everything else.
    Two,
}

/// A link followed.
#[derive(Debug)]
pub struct Followed {
    pub code: String,
    /// When the answer had been read.
    pub answered: Option<Instant>,
}

/// Everything one user did.
#[derive(Debug)]
pub struct Ledger {
    /// The host in its `Referer`, distinct for every user of a log.
    pub referrer: String,
    pub connections: Connections,
    /// Links whose 201 was read.
    pub made: Vec<Arc<Link>>,
    /// URLs of requested links, answered or not.
    pub wanted: Vec<String>,
    /// In the order of the requests.
    pub followed: Vec<Followed>,
    /// Lookups of links.
    pub looks: u64,
}

struct User<'a> {
    known: &'a KnownLinks,
    coins: Coins,
    clients: [Client; 2],
    ledger: Ledger,
}

impl User<'_> {
    /// The connection for following links, or for everything else.
    fn client(&mut self, follows: bool) -> &mut Client {
        let two = self.ledger.connections == Connections::Two;
        &mut self.clients[usize::from(follows && two)]
    }

    fn step(&mut self) -> io::Result<()> {
        let link = self.known.any(&mut self.coins);
        match (self.coins.below(16), link) {
            (0, _) => {
                let answer = self.client(false).get("/health")?;
                goes_on(&answer, 200)
            }
            (1..=3, _) | (_, None) => self.make(),
            (4..=13, Some(link)) => self.follow(&link),
            (_, Some(link)) => self.look(&link),
        }
    }

    fn make(&mut self) -> io::Result<()> {
        let url =
            format!("http://example.com/{}/{}", self.ledger.referrer, self.ledger.wanted.len());
        self.ledger.wanted.push(url.clone());
        let answer = self.client(false).post("/api/urls", &json!({"url": url}))?;
        goes_on(&answer, 201)?;
        let link = Link::new(code_of(&answer.json()), url, 0);
        self.ledger.made.push(Arc::clone(&link));
        self.known.0.write().unwrap().push(link);
        Ok(())
    }

    fn follow(&mut self, link: &Link) -> io::Result<()> {
        let referrer = format!("http://{}/page", self.ledger.referrer);
        let headers = [("Referer", &*referrer), ("User-Agent", "curl/8.5.0")];
        self.ledger.followed.push(Followed { code: link.code.clone(), answered: None });
        link.sent.fetch_add(1, SeqCst);
        let path = format!("/{}", link.code);
        let answer = self.client(true).call("GET", &path, &headers, b"")?;
        goes_on(&answer, 302)?;
        assert_eq!(answer.header("location"), Some(&*link.url));
        link.answered.fetch_add(1, SeqCst);
        self.ledger.followed.last_mut().expect("just pushed").answered = Some(Instant::now());
        Ok(())
    }

    /// Reads a link, which must include every click answered before, by any user.
    fn look(&mut self, link: &Link) -> io::Result<()> {
        let before = link.answered.load(SeqCst);
        let answer = self.client(false).get(&format!("/api/urls/{}?{PATIENTLY}", link.code))?;
        goes_on(&answer, 200)?;
        let after = link.sent.load(SeqCst);
        let details = answer.json();
        assert_eq!(details["original_url"], link.url);
        let clicks = details["clicks"].as_u64().unwrap();
        assert!(before <= clicks && clicks <= after, "{before} <= {clicks} <= {after}: {details}");
        self.ledger.looks += 1;
        Ok(())
    }
}

/// Checks that an answer is as expected, or says that the server is stopping.
fn goes_on(answer: &Answer, status: u16) -> io::Result<()> {
    if answer.status == status {
        return Ok(());
    }
    let text = answer.text();
    let stopping = ["shutting-down", "log-closed", "outcome-unknown"];
    assert!(stopping.iter().any(|slug| text.contains(slug)), "{status}: {answer:?}: {text}");
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Acts as a user until the connection breaks. `name` must be distinct for every user of a log.
pub fn use_until_cut(
    address: SocketAddr,
    known: &KnownLinks,
    name: &str,
    connections: Connections,
    seed: u64,
) -> Ledger {
    let ledger = Ledger {
        referrer: format!("{name}.example"),
        connections,
        made: Vec::new(),
        wanted: Vec::new(),
        followed: Vec::new(),
        looks: 0,
    };
    let (Ok(first), Ok(second)) = (Client::connect(address), Client::connect(address)) else {
        return ledger;
    };
    let clients = [first, second].map(Client::patient);
    let mut user = User { known, coins: Coins::new(seed), clients, ledger };
    while user.step().is_ok() {}
    user.ledger
}
