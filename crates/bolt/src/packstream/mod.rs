//! PackStream 1, the form of values: a [`Writer`] that appends to a buffer, and a [`Reader`] that
//! pulls items out of one and never allocates.

mod reader;
mod writer;

pub use reader::{Item, MAX_DEPTH, PackFault, PackFaultKind, Reader};
pub use writer::Writer;

/// Markers: the first byte of a value, which is also the value itself where it is small.
mod marker {
    pub(super) const TINY_TEXT: u8 = 0x80;
    pub(super) const TINY_LIST: u8 = 0x90;
    pub(super) const TINY_MAP: u8 = 0xA0;
    pub(super) const STRUCT: u8 = 0xB0;
    pub(super) const NULL: u8 = 0xC0;
    pub(super) const FLOAT: u8 = 0xC1;
    pub(super) const FALSE: u8 = 0xC2;
    pub(super) const TRUE: u8 = 0xC3;
    pub(super) const INT_8: u8 = 0xC8;
    pub(super) const INT_16: u8 = 0xC9;
    pub(super) const INT_32: u8 = 0xCA;
    pub(super) const INT_64: u8 = 0xCB;
    /// The first of three: lengths of 8, 16 and 32 bits.
    pub(super) const BYTES: u8 = 0xCC;
    pub(super) const TEXT: u8 = 0xD0;
    pub(super) const LIST: u8 = 0xD4;
    pub(super) const MAP: u8 = 0xD8;
}

#[cfg(test)]
mod tests;
