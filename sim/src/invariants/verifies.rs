//! After recovery, `wellspring verify` finds no damage in any copy.

use super::{Invariant, News, World};
use wellspring_log::inspect::verify_on;

#[derive(Default)]
pub(super) struct Verifies;

impl Invariant for Verifies {
    fn name(&self) -> &'static str {
        "a copy that is well verifies"
    }

    fn hear(&mut self, _: &News, _: &World) -> Result<(), String> {
        Ok(())
    }

    fn when_well(&mut self, world: &World) -> Result<(), String> {
        // Damage that no reader has met is found when indexes are rebuilt.
        for node in world.nodes.iter().filter(|node| !node.rotten) {
            let report = verify_on(&node.storage, &mut |_, _| {}).map_err(|e| e.to_string())?;
            if let Some(damage) = report.damage.first() {
                return Err(format!("n{}: {damage}", node.id));
            }
        }
        Ok(())
    }
}
