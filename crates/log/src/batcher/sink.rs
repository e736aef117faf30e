//! Where a batcher's frames go.

/// Stores frames. Runs on the flusher's thread, so it may wait for a device.
pub trait Sink: Send + 'static {
    /// Stores `parts` in order, or as many whole frames from their beginning as it can.
    /// A frame is never cut between two parts. What is not reported as stored comes
    /// again, at the beginning of the next call, with whatever has been pushed since.
    fn store(&mut self, parts: &[&[u8]]) -> Stored;
}

/// What a [`Sink`] has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of the parts, all together, from the beginning.
    pub bytes: usize,
    /// Frames in these bytes, counted by the sink itself.
    pub events: u64,
    /// Why it is not everything, if so.
    pub trouble: Option<Trouble>,
}

/// Why a sink has not stored everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Too much at a time; it will go on at once.
    Busy,
    /// The system refused for a reason that passes, such as a lack of descriptors. Pushes are
    /// taken as long as they fit.
    Unavailable,
    /// No room on the device. Pushes are refused until a later attempt succeeds.
    Full,
    /// It stores nothing any more; this is why.
    Closed(String),
}
