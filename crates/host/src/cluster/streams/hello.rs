//! How two nodes prove to each other, at the beginning of a stream, that they belong together.
//!
//! ```text
//! dialer:   "WS\x01RAFT" | version u8 | channel u8 | id that it means u64
//!           | entry that made it a member u64 | hello
//! acceptor: version u8 | status u8 | hello | mac
//! dialer:   mac
//! hello:    length u16 | nonce 16 | cluster 16 | generation u64 | id u64
//!           | name u8 length, bytes | URL u16 length, bytes
//! ```
//!
//! Status 0: welcome. 1: the acceptor is in no group, or does not know yet whether the dialer is in
//! it; nothing follows. 2: the dialer was removed from the group, which the role below says, too.
//!
//! Each mac is HMAC-SHA-256 under the use `Nodes` of the cluster key, over the role and all that
//! both have said. Both nonces are fresh, so nothing can be replayed, and no clock is asked.

use super::{Admission, Channel, StreamParty};
use crate::cluster::NodeName;
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use ring::hmac;
use std::fmt;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use wellspring_log::shared::entry::ClusterId;

/// The first bytes of a stream. No method of HTTP has a 1 in its name.
pub(crate) const MAGIC: &[u8] = b"WS\x01RAFT";
const VERSION: u8 = 1;
const PREFIX_BYTES: usize = MAGIC.len() + 18;
const IN_A_GROUP: u8 = 0;
const IN_NO_GROUP: u8 = 1;
const REMOVED: u8 = 2;
const MAC_BYTES: usize = 32;
/// Longest URL of a node, in bytes.
const MAX_URL_BYTES: usize = 2_048;
const MAX_HELLO_BYTES: usize = 128 + 64 + MAX_URL_BYTES;

/// Why a stream between two nodes does not come about, or ended.
#[derive(Debug)]
pub enum StreamFault {
    /// The connection failed.
    Io(io::Error),
    /// The other node speaks this version.
    Version(u8),
    /// What it sends is not what a node sends.
    Malformed,
    /// The other node belongs to no group yet.
    NoGroup,
    /// It does not have the cluster key of this node.
    Key,
    /// It belongs to this cluster.
    Cluster(ClusterId),
    /// It is of this generation of the cluster.
    Generation {
        /// The other node's.
        theirs: u64,
        /// This node's.
        own: u64,
    },
    /// It has another id than the one that was meant: its disk was emptied, or the address has
    /// passed to another node.
    Id,
    /// It has the id of this node.
    SameId,
    /// One of the two was removed from the group.
    Removed {
        /// This node.
        own: bool,
    },
}

impl StreamFault {
    /// Whether a node refused the other, rather than did not reach it.
    pub(super) fn is_refusal(&self) -> bool {
        !matches!(self, StreamFault::Io(_) | StreamFault::NoGroup)
    }

    /// Whether the group goes on without this node.
    pub(super) fn excludes_this_node(&self) -> bool {
        match self {
            StreamFault::Removed { own } => *own,
            StreamFault::Generation { theirs, own } => theirs > own,
            _ => false,
        }
    }
}

impl From<io::Error> for StreamFault {
    fn from(error: io::Error) -> StreamFault {
        StreamFault::Io(error)
    }
}

impl fmt::Display for StreamFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamFault::Io(error) => error.fmt(f),
            StreamFault::Version(theirs) => {
                write!(f, "it speaks version {theirs} of streams, and this node version {VERSION}")
            }
            StreamFault::Malformed => f.write_str("it sends what no node of this version sends"),
            StreamFault::NoGroup => f.write_str("it waits for cluster init or join"),
            StreamFault::Key => f.write_str("it has another cluster key (--cluster-key)"),
            StreamFault::Cluster(theirs) => write!(f, "it belongs to another cluster, {theirs}"),
            StreamFault::Generation { theirs, own } => {
                write!(f, "it is of generation {theirs} of the cluster, and this node of {own}")
            }
            StreamFault::Removed { own: true } => {
                f.write_str("it says that this node was removed from the cluster")
            }
            StreamFault::Removed { own: false } => f.write_str("it was removed from the cluster"),
            StreamFault::Id => {
                f.write_str("it has another id than the member of the group: its data was replaced")
            }
            StreamFault::SameId => {
                f.write_str("it has the id of this node: one of the two runs on a copied folder")
            }
        }
    }
}

/// A connection and what was read of it.
pub(super) struct ReadAhead<S> {
    pub(super) stream: S,
    pub(super) read: BytesMut,
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    /// The next bytes.
    pub(super) async fn take(&mut self, count: usize) -> io::Result<Bytes> {
        while self.read.len() < count {
            self.read.reserve(count - self.read.len());
            if self.stream.read_buf(&mut self.read).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.read.split_to(count).freeze())
    }

    async fn hello(&mut self) -> Result<Hello, StreamFault> {
        let length = usize::from(self.take(2).await?.get_u16());
        if length > MAX_HELLO_BYTES {
            return Err(StreamFault::Malformed);
        }
        let bytes = self.take(length).await?;
        let party = decode(bytes.clone()).ok_or(StreamFault::Malformed)?;
        Ok(Hello { party, bytes })
    }
}

struct Hello {
    party: StreamParty,
    bytes: Bytes,
}

fn encode(party: &StreamParty) -> io::Result<Bytes> {
    let mut out = BytesMut::with_capacity(64 + party.url.len());
    out.put_slice(&crate::random::bytes::<16>()?);
    out.put_slice(&party.cluster.0);
    out.put_u64(party.generation);
    out.put_u64(party.id);
    out.put_u8(party.name.as_str().len() as u8);
    out.put_slice(party.name.as_str().as_bytes());
    let url = party.url.get(..MAX_URL_BYTES).unwrap_or(&party.url);
    out.put_u16(url.len() as u16);
    out.put_slice(url.as_bytes());
    Ok(out.freeze())
}

/// Who a hello is of; proves nothing.
pub(super) fn decode(mut bytes: Bytes) -> Option<StreamParty> {
    let take = |bytes: &mut Bytes, count| (count <= bytes.len()).then(|| bytes.split_to(count));
    let text = |text: Bytes| String::from_utf8(text.to_vec()).ok();
    take(&mut bytes, 16)?;
    let cluster = ClusterId(take(&mut bytes, 16)?[..].try_into().ok()?);
    let (generation, id) = (bytes.try_get_u64().ok()?, bytes.try_get_u64().ok()?);
    let length = usize::from(bytes.try_get_u8().ok()?);
    let name = NodeName::parse(&text(take(&mut bytes, length)?)?).ok()?;
    let length = usize::from(bytes.try_get_u16().ok()?);
    let url = text(take(&mut bytes, length)?)?;
    let is_url = length <= MAX_URL_BYTES && !url.contains(char::is_control);
    (is_url && bytes.is_empty()).then_some(StreamParty { cluster, generation, id, name, url })
}

const ACCEPTOR: &str = "acceptor";
/// An acceptor whose group has removed the dialer.
const REMOVER: &str = "acceptor that has removed the dialer";

/// What one side proves, if these are the bytes of both.
fn proof(role: &str, dialer: &[u8], acceptor: &[u8]) -> Vec<u8> {
    // No request's signature is over such a text: its method would have a space in it.
    let label = format!("wellspring stream of the {role}\n");
    [label.as_bytes(), &(dialer.len() as u32).to_be_bytes(), dialer, acceptor].concat()
}

/// Whether the other one belongs to this node's group.
fn judge(own: &StreamParty, other: &StreamParty) -> Result<(), StreamFault> {
    if other.cluster != own.cluster {
        return Err(StreamFault::Cluster(other.cluster));
    }
    if other.generation != own.generation {
        let (theirs, own) = (other.generation, own.generation);
        return Err(StreamFault::Generation { theirs, own });
    }
    if other.id == own.id { Err(StreamFault::SameId) } else { Ok(()) }
}

/// Proves this node to the one with this id, which proves itself.
///
/// # Errors
/// [`StreamFault`].
pub(super) async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    key: &hmac::Key,
    own: &StreamParty,
    (to, channel, since): (u64, Channel, u64),
    stream: S,
) -> Result<(StreamParty, ReadAhead<S>), StreamFault> {
    let hello = encode(own)?;
    let mut said = BytesMut::from(MAGIC);
    said.put_u8(VERSION);
    said.put_u8(channel as u8);
    said.put_u64(to);
    said.put_u64(since);
    said.put_u16(hello.len() as u16);
    said.put_slice(&hello);
    let mut stream = ReadAhead { stream, read: BytesMut::new() };
    stream.stream.write_all(&said).await?;
    let status = stream.take(2).await?;
    let role = match (status[0], status[1]) {
        (VERSION, IN_A_GROUP) => ACCEPTOR,
        (VERSION, REMOVED) => REMOVER,
        (VERSION, _) => return Err(StreamFault::NoGroup),
        (other, _) => return Err(StreamFault::Version(other)),
    };
    let theirs = stream.hello().await?;
    let mac = stream.take(MAC_BYTES).await?;
    // The other side names what it refuses, too.
    let own_mac = hmac::sign(key, &proof("dialer", &said, &theirs.bytes));
    stream.stream.write_all(own_mac.as_ref()).await?;
    stream.stream.flush().await?;
    hmac::verify(key, &proof(role, &said, &theirs.bytes), &mac).map_err(|_| StreamFault::Key)?;
    judge(own, &theirs.party)?;
    if role == REMOVER {
        return Err(StreamFault::Removed { own: true });
    }
    if theirs.party.id != to {
        return Err(StreamFault::Id);
    }
    Ok((theirs.party, stream))
}

/// What an acceptor learns.
pub(super) struct Acceptance {
    /// The dialer, if it has said who it is; only with `outcome` it has proven that.
    pub(super) party: Option<StreamParty>,
    pub(super) outcome: Result<Channel, StreamFault>,
}

impl From<StreamFault> for Acceptance {
    fn from(fault: StreamFault) -> Acceptance {
        Acceptance { party: None, outcome: Err(fault) }
    }
}

/// Proves this node to one that dials, which proves itself; `own` is `None` in no group. `admit`:
/// whether the node with an id belongs to it, which is a member since an entry.
pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    key: &hmac::Key,
    own: Option<&StreamParty>,
    admit: impl Fn(u64, u64) -> Admission,
    stream: &mut ReadAhead<S>,
) -> Acceptance {
    let read = async {
        let prefix = stream.take(PREFIX_BYTES).await?;
        let mut rest = prefix.slice(MAGIC.len()..);
        let (version, channel, meant) = (rest.get_u8(), rest.get_u8(), rest.get_u64());
        let since = rest.get_u64();
        if version != VERSION {
            stream.stream.write_all(&[VERSION, IN_NO_GROUP]).await?;
            return Err(StreamFault::Version(version));
        }
        let channel = Channel::of(channel).ok_or(StreamFault::Malformed)?;
        let hello = stream.hello().await?;
        let length = (hello.bytes.len() as u16).to_be_bytes();
        let said = [&prefix[..], &length, &hello.bytes].concat();
        Ok((said, hello.party, channel, (meant, since)))
    };
    let (said, party, channel, (meant, since)) = match read.await {
        Ok(read) => read,
        Err(fault) => return fault.into(),
    };
    let proven = async {
        let is_same = |own: &&StreamParty| judge(own, &party).is_ok();
        let admission = own.filter(is_same).map_or(Admission::Belongs, |_| admit(party.id, since));
        let Some(own) = own.filter(|_| admission != Admission::Undecided) else {
            stream.stream.write_all(&[VERSION, IN_NO_GROUP]).await?;
            stream.stream.flush().await?;
            return Err(StreamFault::NoGroup);
        };
        let is_removed = admission == Admission::Removed;
        let (status, role) = if is_removed { (REMOVED, REMOVER) } else { (IN_A_GROUP, ACCEPTOR) };
        let hello = encode(own)?;
        let mac = hmac::sign(key, &proof(role, &said, &hello));
        let length = (hello.len() as u16).to_be_bytes();
        let answer = [&[VERSION, status][..], &length, &hello, mac.as_ref()].concat();
        stream.stream.write_all(&answer).await?;
        stream.stream.flush().await?;
        let mac = stream.take(MAC_BYTES).await?;
        hmac::verify(key, &proof("dialer", &said, &hello), &mac).map_err(|_| StreamFault::Key)?;
        judge(own, &party)?;
        match meant == own.id {
            _ if is_removed => Err(StreamFault::Removed { own: false }),
            true => Ok(channel),
            false => Err(StreamFault::Id),
        }
    };
    let outcome = proven.await;
    Acceptance { party: Some(party), outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterKey;

    fn party(id: u64) -> StreamParty {
        let name = NodeName::parse(&format!("n{id}")).unwrap();
        let url = format!("http://127.0.0.1:{id}");
        StreamParty { cluster: ClusterId([7; 16]), generation: 1, id, name, url }
    }

    /// The group has removed the node 5, and does not know of 6.
    fn admit(id: u64, since: u64) -> Admission {
        assert_eq!(id, since);
        match id {
            5 => Admission::Removed,
            6 => Admission::Undecided,
            _ => Admission::Belongs,
        }
    }

    type Outcome = (Result<StreamParty, String>, Result<StreamParty, String>);

    async fn meet(keys: (u8, u8), one: StreamParty, to: u64, other: StreamParty) -> Outcome {
        let (left, right) = tokio::io::duplex(4_096);
        let (left_key, right_key) = (ClusterKey::known(keys.0), ClusterKey::known(keys.1));
        let dialing = dial(left_key.nodes(), &one, (to, Channel::Bulk, one.id), left);
        let mut stream = ReadAhead { stream: right, read: BytesMut::new() };
        let accepting = accept(right_key.nodes(), Some(&other), admit, &mut stream);
        let (dialed, accepted) = tokio::join!(dialing, accepting);
        let accepted = match accepted.outcome {
            Ok(channel) => {
                assert_eq!(channel, Channel::Bulk);
                Ok(accepted.party.unwrap())
            }
            Err(fault) => Err(fault.to_string()),
        };
        (dialed.map(|(party, _)| party).map_err(|fault| fault.to_string()), accepted)
    }

    #[tokio::test]
    async fn nodes_of_one_group_prove_who_they_are() {
        let met = meet((7, 7), party(1), 2, party(2)).await;
        assert_eq!(met, (Ok(party(2)), Ok(party(1))));
    }

    #[tokio::test]
    async fn each_side_names_why_it_refuses_the_other() {
        let other_cluster = StreamParty { cluster: ClusterId([8; 16]), ..party(2) };
        let generation = StreamParty { generation: 2, ..party(2) };
        let twin = StreamParty { id: 1, ..party(2) };
        for (keys, to, other, part) in [
            ((7, 8), 2, party(2), "another cluster key"),
            ((7, 7), 2, other_cluster, "another cluster"),
            ((7, 7), 2, generation, "generation"),
            ((7, 7), 3, party(2), "another id"),
            ((7, 7), 1, twin, "the id of this node"),
        ] {
            let (dialed, accepted) = meet(keys, party(1), to, other).await;
            for refused in [dialed.unwrap_err(), accepted.unwrap_err()] {
                assert!(refused.contains(part), "{refused}");
            }
        }
    }

    #[tokio::test]
    async fn a_node_that_was_removed_is_told_so() {
        let (dialed, accepted) = meet((7, 7), party(5), 2, party(2)).await;
        assert_eq!(accepted.unwrap_err(), "it was removed from the cluster");
        assert_eq!(dialed.unwrap_err(), "it says that this node was removed from the cluster");
        let (dialed, accepted) = meet((7, 8), party(5), 2, party(2)).await;
        assert!([dialed, accepted].iter().all(|m| m.as_ref().unwrap_err().contains("key")));
        let (dialed, _) = meet((7, 7), party(6), 2, party(2)).await;
        assert_eq!(dialed.unwrap_err(), StreamFault::NoGroup.to_string());
        let newer = StreamFault::Generation { theirs: 2, own: 1 };
        assert!(newer.excludes_this_node() && newer.is_refusal());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_hello_or_refused(bytes in proptest::collection::vec(0..9_u8, 0..200)) {
            let _ = decode(Bytes::from(bytes));
        }

        #[test]
        fn a_hello_is_read_as_it_was_written_and_no_part_is_one(id: u64, end in 0..99_usize) {
            let party = StreamParty { id, ..party(7) };
            let hello = encode(&party).unwrap();
            proptest::prop_assert_eq!(decode(hello.clone()), Some(party));
            proptest::prop_assert_eq!(decode(hello.slice(..end.min(hello.len() - 1))), None);
        }
    }

    #[tokio::test]
    async fn a_recorded_dialer_proves_nothing_again() {
        let key = ClusterKey::known(7);
        // The same bytes to another acceptor, whose nonce differs.
        let (left, right) = tokio::io::duplex(4_096);
        let (one, other) = (party(1), party(2));
        let dialing = dial(key.nodes(), &one, (2, Channel::Control, 1), left);
        let mut recorded = ReadAhead { stream: right, read: BytesMut::new() };
        let recording = async {
            let prefix = recorded.take(PREFIX_BYTES).await.unwrap();
            let hello = recorded.hello().await.unwrap().bytes;
            let own = encode(&other).unwrap();
            let length = (hello.len() as u16).to_be_bytes();
            let said = [&prefix[..], &length, &hello].concat();
            let mac = hmac::sign(key.nodes(), &proof("acceptor", &said, &own));
            let own_length = (own.len() as u16).to_be_bytes();
            let answer = [&[VERSION, 0][..], &own_length, &own, mac.as_ref()].concat();
            recorded.stream.write_all(&answer).await.unwrap();
            [&said[..], &recorded.take(MAC_BYTES).await.unwrap()].concat()
        };
        let (dialed, replayed) = tokio::join!(dialing, recording);
        assert!(dialed.is_ok());
        let (mut left, right) = tokio::io::duplex(4_096);
        left.write_all(&replayed).await.unwrap();
        let mut stream = ReadAhead { stream: right, read: BytesMut::new() };
        let accepted = accept(key.nodes(), Some(&other), admit, &mut stream).await;
        assert!(matches!(accepted.outcome, Err(StreamFault::Key)));
    }
}
