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
    let Some((own, sink)) = shared.own.get() else { return Err(StreamFault::NoGroup) };
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
        let to = (peer.id, channel, sink.member_since());
        hello::dial(shared.key.nodes(), own, to, stream).await
    };
    let late = |_| StreamFault::Io(io::ErrorKind::TimedOut.into());
    timeout(PROOF_PATIENCE, proving).await.map_err(late)?
}
