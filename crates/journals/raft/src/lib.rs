//! A shared log without another server: the nodes agree on its order by Raft. So far it has the
//! lowest room, the [write-ahead log](wal), which the engine will stand on.

#![forbid(unsafe_code)]

mod plants;
pub mod wal;
