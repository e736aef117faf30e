//! Flow control (RFC 9113 section 5.2): how much may still be sent, either way.

use super::Broken;

/// The largest window there can be.
pub(super) const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// Every window before anything was said about it.
pub(super) const DEFAULT_WINDOW: u32 = 65_535;
/// When this much has arrived, it is given back.
const GIVE_BACK: u32 = 1 << 30;

/// What we may send. It can be below zero: the peer may shrink windows that are in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) fn new(size: u32) -> Self {
        SendWindow(i64::from(size))
    }

    /// How many of `wanted` bytes may be sent.
    #[inline]
    pub(super) fn allows(self, wanted: usize) -> usize {
        usize::try_from(self.0).map_or(0, |left| left.min(wanted))
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(i64::MAX);
    }

    /// The peer gave more room, or with a new initial size more or less.
    pub(super) fn change(&mut self, by: i64) -> Result<(), Broken> {
        self.0 += by;
        if self.0 > i64::from(LARGEST_WINDOW) {
            return Err(Broken::protocol("a window larger than 2^31 - 1"));
        }
        Ok(())
    }
}

/// What the peer may send us: as much as can be, and given back before it is half used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceiveWindow {
    used: u32,
}

impl ReceiveWindow {
    /// Bytes arrived. Returns how many are to be given back, if any.
    #[inline]
    pub(super) fn arrived(&mut self, bytes: usize) -> Option<u32> {
        // A frame is below 2^24 bytes, so giving back always comes before the window is used up.
        self.used += u32::try_from(bytes).unwrap_or(u32::MAX / 4);
        (self.used >= GIVE_BACK).then(|| std::mem::take(&mut self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shrinks_below_zero_and_never_grows_beyond_its_limit() {
        let mut window = SendWindow::new(10);
        assert_eq!((window.allows(4), window.allows(40)), (4, 10));
        window.spend(10);
        window.change(-5).unwrap();
        assert_eq!(window.allows(1), 0);
        window.change(6).unwrap();
        assert_eq!(window.allows(9), 1);
        assert!(window.change(i64::from(LARGEST_WINDOW)).is_err());
    }

    #[test]
    fn everything_received_is_given_back() {
        let mut window = ReceiveWindow::default();
        let mut given = 0u64;
        for _ in 0..1000 {
            given += u64::from(window.arrived(1 << 24).unwrap_or(0));
        }
        assert_eq!(given + u64::from(window.used), 1000 << 24);
        assert!(window.used < GIVE_BACK);
    }
}
