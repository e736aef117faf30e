//! The name closest to a mistyped one.

#[cfg(target_os = "linux")]
pub(crate) use wellspring_load::nearest::nearest;

/// None: the load tester, which knows it, exists for Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nearest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    None
}
