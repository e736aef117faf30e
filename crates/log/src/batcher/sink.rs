//! The destination of a batcher's frames.

/// Stores frames. Runs on the flusher's thread, so it may wait for a device.
pub trait Sink: Send + 'static {
    /// Stores `parts` in order, or as many whole frames from the beginning as it can. A frame is
    /// never split between parts. Whatever is not reported as stored is passed again at the
    /// beginning of the next call, followed by newer frames.
    fn store(&mut self, parts: &[&[u8]]) -> SinkOutcome;
}

/// The result of a [`Sink`]'s call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkOutcome {
    /// Number of bytes stored, from the beginning of all parts together.
    pub bytes: usize,
    /// Number of frames stored, counted by the sink.
    pub events: u64,
    /// Why not everything was stored, if so.
    pub trouble: Option<Trouble>,
}

/// Why a sink has not stored everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Too much at once; it can continue immediately.
    Busy,
    /// The system refused temporarily, for example for lack of descriptors. Pushes are accepted
    /// while they fit.
    Unavailable,
    /// The device is full. Pushes are refused until a later attempt succeeds.
    Full,
    /// It stores nothing any more, for this reason.
    Closed(String),
}
