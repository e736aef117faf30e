//! Figures of the device that the data folder is on.

use crate::stats::family::Family;
use std::path::Path;

/// Its size and what is left of it; nothing if the file system does not say.
pub(super) fn families(data: &Path) -> Vec<Family> {
    let Ok(device) = rustix::fs::statvfs(data) else { return Vec::new() };
    let bytes = |blocks: u64| blocks.saturating_mul(device.f_frsize);
    vec![
        Family::gauge(
            "wellspring_device_free_bytes",
            "Bytes that the file system of the data folder has left for the server.",
            bytes(device.f_bavail),
        ),
        Family::gauge(
            "wellspring_device_bytes",
            "Bytes of the file system of the data folder.",
            bytes(device.f_blocks),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::family::Value;

    #[test]
    fn what_is_left_is_less_than_all() {
        let dir = tempfile::tempdir().unwrap();
        let told = families(dir.path());
        let [free, all] = [0, 1].map(|at: usize| match told[at].series[0].value {
            Value::Whole(bytes) => bytes,
            _ => panic!("{}", told[at].name),
        });
        assert!(0 < free && free < all, "{free} of {all}");
        assert!(families(&dir.path().join("none")).is_empty());
    }
}
