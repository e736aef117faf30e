//! The streams that a node dials: connected again with growing pauses, for as long as it runs.

use super::exchange::exchange;
use super::hello::ReadAhead;
use super::hello::{self, StreamFault};
use super::queue::Dialer;
use super::{Channel, Direction, PROOF_PATIENCE, Peer, Shared, StreamParty, lock};
use rustix::net::sockopt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use wellspring_client::connection::{ByteStream, reach};
use wellspring_client::endpoint::Endpoint;

/// Pauses between attempts grow from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// A machine that acknowledges nothing for so long is gone.
const SILENT_MS: u32 = 5_000;

/// Keeps a stream to a node.
pub(super) async fn keep_dialing(shared: &Shared, peer: &Peer, channel: Channel) {
    let mut pause = FIRST_PAUSE;
    loop {
        match connect(shared, peer, channel).await {
            Ok((party, stream)) => {
                pause = FIRST_PAUSE;
                shared.succeeded(Direction::Out, peer.name.as_str());
                let Some((_, sink)) = shared.own.get() else { return };
                let queue = &peer.queues[channel as usize];
                let ended = exchange(stream, &party, queue, Dialer::ThisNode, &**sink).await;
                tracing::debug!(node = %peer.name, ?channel, ?ended, "a stream has ended");
            }
            Err(fault) => {
                let url = lock(&peer.url).clone();
                shared.failed(Direction::Out, peer.name.as_str(), &fault);
                tracing::debug!(node = %peer.name, url, %fault, "a stream is tried again");
            }
        }
        let _ = timeout(pause, peer.moved[channel as usize].notified()).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

async fn connect(
    shared: &Shared,
    peer: &Peer,
    channel: Channel,
) -> Result<(StreamParty, ReadAhead<Box<dyn ByteStream>>), StreamFault> {
    let (own, sink) = shared.own.get().ok_or(StreamFault::NoGroup)?;
    // Others would take one that does not say since when it is a member for one that joins.
    let since = loop {
        match sink.member_since() {
            Some(since) => break since,
            None => tokio::time::sleep(FIRST_PAUSE).await,
        }
    };
    let url = lock(&peer.url).clone();
    let endpoint = Endpoint::parse(&url).map_err(io::Error::other)?;
    let terms = shared.trust.terms(&endpoint).map_err(io::Error::other)?;
    let proving = async {
        let socket = reach(&endpoint).await?;
        sockopt::set_tcp_user_timeout(&socket, SILENT_MS).map_err(io::Error::from)?;
        let stream: Box<dyn ByteStream> = match terms {
            None => Box::new(socket),
            Some(terms) => {
                let connector = TlsConnector::from(Arc::clone(&terms.config));
                Box::new(connector.connect(terms.name.clone(), socket).await?)
            }
        };
        let to = (peer.id, channel, since);
        hello::dial(shared.key.nodes(), own, to, stream).await
    };
    let late = |_| StreamFault::Io(io::ErrorKind::TimedOut.into());
    timeout(PROOF_PATIENCE, proving).await.map_err(late)?
}

#[cfg(test)]
mod tests {
    use super::super::hello::MAGIC;
    use super::super::{AddressSource, Admission, HEADER_BYTES, StreamSink, Streams};
    use super::*;
    use crate::cluster::{ClusterKey, NodeName};
    use bytes::Bytes;
    use std::sync::OnceLock;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use wellspring_log::shared::entry::ClusterId;

    /// An engine that knows since when it is a member once this is set.
    struct Starting(OnceLock<u64>);

    impl StreamSink for Starting {
        fn member_since(&self) -> Option<u64> {
            self.0.get().copied()
        }

        fn admit(&self, _: u64, _: u64) -> Admission {
            Admission::Belongs
        }

        fn excluded(&self, _: &str) {}

        fn body_bytes(&self, _: &[u8; HEADER_BYTES]) -> Option<usize> {
            None
        }

        fn arrived(&self, _: u64, _: &[u8; HEADER_BYTES], _: Bytes) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn a_node_dials_once_it_knows_since_when_it_is_a_member() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let name = |name| NodeName::parse(name).unwrap();
        let party = StreamParty {
            cluster: ClusterId([7; 16]),
            generation: 1,
            id: 1,
            name: name("a"),
            url: String::new(),
        };
        let streams = Streams::start(Arc::new(ClusterKey::known(7)), None).unwrap();
        let engine = Arc::new(Starting(OnceLock::new()));
        streams.begin(party, Arc::clone(&engine) as _);
        streams.know(2, &name("b"), &url, AddressSource::Members);
        assert!(timeout(5 * FIRST_PAUSE, listener.accept()).await.is_err());
        engine.0.set(9).unwrap();
        let (mut dialed, _) = listener.accept().await.unwrap();
        let mut begun = [0; MAGIC.len() + 18];
        dialed.read_exact(&mut begun).await.unwrap();
        assert!(begun.starts_with(MAGIC) && begun.ends_with(&9u64.to_be_bytes()), "{begun:?}");
    }
}
