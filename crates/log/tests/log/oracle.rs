//! The suite's oracle, and logs on a simulated disk.

pub use wellspring_log_conformance::oracle::*;

use std::sync::Arc;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, OpenError, Options};

pub fn open(storage: &SimulatedStorage, options: Options) -> Result<Log, OpenError> {
    Log::open_on(Arc::new(storage.clone()), options)
}
