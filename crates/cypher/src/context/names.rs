//! The graph's name numbers for the names in a statement's text.

use std::sync::Arc;
use wellspring_graph::{Name, Transaction};

/// Names looked up during this run of the statement.
#[derive(Debug, Default)]
pub struct Names {
    known: Vec<(usize, Name)>,
}

impl Names {
    /// Number of names that are kept; look-ups scan them linearly.
    const KEPT: usize = 16;

    /// The name of a text that belongs to the statement's plan, if the graph has ever used it. The
    /// text is identified by its address, which stays unique while the statement runs; other texts
    /// are looked up in the transaction.
    pub fn of_plan(&mut self, text: &Arc<str>, transaction: &Transaction) -> Name {
        let address = Arc::as_ptr(text).cast::<u8>().addr();
        if let Some((_, name)) = self.known.iter().find(|known| known.0 == address) {
            return *name;
        }
        let name = transaction.known_name(text);
        // An unknown name may be written later in the transaction.
        let stays = name != Name::UNKNOWN || !transaction.is_writing();
        if stays && self.known.len() < Self::KEPT {
            self.known.push((address, name));
        }
        name
    }
}
