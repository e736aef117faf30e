//! The state of a session.

use super::head::{Framing, Persistence};
use super::loop_state::Arrival;
use crate::access::Principal;
use crate::fast::AnyParams;
use crate::http::body_memory::Charge;
use crate::http::chunked::{ChunkFault, Chunked};
use std::net::IpAddr;
use std::sync::Arc;

/// The state of a session.
pub(super) enum State {
    /// Between requests, or in a head of which `seen` bytes were parsed in vain.
    Head {
        seen: usize,
        line: bool,
    },
    /// Before a request of which this many bytes have to be here to be read again.
    Whole {
        needs: usize,
        path_index: usize,
    },
    /// Before a request that is read once those before it are answered.
    Behind,
    /// Before a request that is read again after the other connections have had their turn.
    Later,
    Body(Box<ReceivingBody>),
    /// In a refused body with this many bytes left.
    Skip {
        rest: Rest,
        allowance: u64,
    },
    /// A complete request that found no room.
    Stalled(Box<KeptHead>),
    Leaving,
    Ended,
}

impl State {
    /// Between requests.
    pub(super) const IDLE: State = State::Head { seen: 0, line: false };
}

/// A request as far as its head tells.
pub(super) struct PendingRequest {
    /// The index of its fast path.
    pub(super) path_index: usize,
    pub(super) params: AnyParams,
    /// The caller of a request that is read as a whole.
    pub(super) principal: Option<Arc<Principal>>,
    pub(super) client: Option<IpAddr>,
    pub(super) after: Persistence,
    pub(super) came: Arrival,
}

pub(super) struct ReceivingBody {
    pub(super) asking: PendingRequest,
    pub(super) rest: Rest,
    pub(super) body: Vec<u8>,
    pub(super) charge: Charge,
    pub(super) most: usize,
    /// The announced framing.
    pub(super) framing: Framing,
}

pub(super) struct KeptHead {
    pub(super) asking: PendingRequest,
    /// The word of its target, if one varies.
    pub(super) word: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) _charge: Charge,
}

/// A refused request, whatever the rest of its body contains.
pub(super) struct RefusedRequest {
    pub(super) path_index: usize,
    pub(super) came: Arrival,
    pub(super) after: Persistence,
    pub(super) framing: Framing,
    pub(super) rest: Rest,
}

/// The part of a body still to be received.
pub(super) enum Rest {
    Length(u64),
    Chunked(Chunked),
}

impl Rest {
    pub(super) fn of(framing: Framing, head_bytes: usize) -> Rest {
        match framing {
            Framing::Length(length) => Rest::Length(length),
            Framing::Chunked => Rest::Chunked(Chunked::new(head_bytes)),
        }
    }

    /// The next piece of the body in `input`: bytes consumed, data, whether it is the last.
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, &'a [u8], bool), ChunkFault> {
        match self {
            Rest::Length(left) => {
                let used = usize::try_from(*left).map_or(input.len(), |l| l.min(input.len()));
                *left -= used as u64;
                Ok((used, &input[..used], *left == 0))
            }
            Rest::Chunked(chunked) => chunked.next(input).map(|p| (p.used, p.data, p.end)),
        }
    }
}
