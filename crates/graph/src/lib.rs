//! A property graph as persistent data.
//!
//! A version of the graph is one [`Graph`], which is cloned in constant time; a [`Transaction`] works on its own
//! clone. Nothing here reads a clock, a disk or a socket.
#![forbid(unsafe_code)]
