//! Which history a log has: the identity that tells it from another log of the same name.

use std::fmt;
use std::str::FromStr;

/// Identifies the history of a log. It is drawn when the log is created, kept by everything that
/// continues the log (restarts, copies of its folder, other nodes), and drawn anew by a restore: a
/// position means the same event only within one history.
///
/// As text, 16 hexadecimal digits: `4f1c09d2a87b4e6f`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HistoryId(pub u64);

impl fmt::Display for HistoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The text is not a history's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAHistoryId;

impl fmt::Display for NotAHistoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a history is 16 hexadecimal digits")
    }
}

impl std::error::Error for NotAHistoryId {}

impl FromStr for HistoryId {
    type Err = NotAHistoryId;

    fn from_str(text: &str) -> Result<HistoryId, NotAHistoryId> {
        if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(NotAHistoryId);
        }
        u64::from_str_radix(text, 16).map(HistoryId).map_err(|_| NotAHistoryId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_from_its_text() {
        for id in [0, 1, 0x4f1c_09d2_a87b_4e6f, u64::MAX] {
            let id = HistoryId(id);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.to_string().len(), 16);
        }
        for text in
            ["", "4f1c09d2a87b4e6", "4f1c09d2a87b4e6f0", "+f1c09d2a87b4e6f", "4f1c09d2a87b4e6é"]
        {
            assert_eq!(text.parse::<HistoryId>(), Err(NotAHistoryId), "{text:?}");
        }
    }
}
