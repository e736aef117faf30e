//! The graph's numbers for the names that a statement's text has.

use std::sync::Arc;
use wellspring_graph::{Name, Transaction};

/// Names that were looked up in this statement's run.
#[derive(Debug, Default)]
pub struct Names {
    known: Vec<(usize, Name)>,
}

impl Names {
    /// How many are kept: they are gone through one by one.
    const KEPT: usize = 16;

    /// The name of a text that belongs to the statement's plan, if the graph ever saw it. It is
    /// known by its address, which stays its own as long as the statement runs; any other text goes
    /// to the transaction.
    pub fn of_plan(&mut self, text: &Arc<str>, transaction: &Transaction) -> Name {
        let address = Arc::as_ptr(text).cast::<u8>().addr();
        if let Some((_, name)) = self.known.iter().find(|known| known.0 == address) {
            return *name;
        }
        let name = transaction.known_name(text);
        // One that is not known may be written meanwhile.
        let stays = name != Name::UNKNOWN || !transaction.is_writing();
        if stays && self.known.len() < Self::KEPT {
            self.known.push((address, name));
        }
        name
    }
}
