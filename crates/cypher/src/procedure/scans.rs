//! Scans that are followed to their ends.

use crate::context::Context;
use crate::error::Result;
use wellspring_graph::EntityScan;

/// Passes everything that a scan finds to `visit`; what it examines is charged for.
pub(super) fn each_found<Scan: EntityScan>(
    mut scan: Scan,
    context: &mut Context<'_>,
    mut visit: impl FnMut(Scan::Item, &mut Context<'_>) -> Result<()>,
) -> Result<()> {
    let (mut found, mut is_finished) = (Vec::new(), false);
    while !is_finished {
        let progress = scan.fill(context.transaction, &mut found);
        context.budget.charge_steps(1 + progress.examined as u64)?;
        is_finished = progress.is_finished;
        for entity in found.drain(..) {
            visit(entity, context)?;
        }
    }
    Ok(())
}
