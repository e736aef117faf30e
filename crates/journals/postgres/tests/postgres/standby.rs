//! A synchronous standby: consequences of its loss and its promotion.

use crate::reader::Reader;
use crate::server::own_server;
use wellspring_journal_postgres::Durability;
use wellspring_log::shared::{OfferOutcome, Place};

#[test]
fn a_wait_for_the_standby_that_is_cancelled_leaves_the_outcome_unknown() {
    let Some(server) = own_server("standby::a_wait_for_the_standby_that_is_cancelled", &[]) else {
        return;
    };
    let standby = server.standby();
    server.wait_for("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1");
    let node = server.node();
    assert_eq!(node.durability().durability(), Durability::Standby);
    let mut a = Reader::of(&node, "main");
    assert_eq!(a.place(0, b"first"), OfferOutcome::Placed(Place(1)));
    standby.stop();
    let id = a.offer(1, b"here alone");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    server.wait_for(waits, "1");
    let writers = "FROM pg_stat_activity WHERE application_name = 'wellspring writes'";
    server.sql(&format!("SELECT pg_cancel_backend(pid) {writers}"));
    assert_eq!(a.outcome(id), OfferOutcome::Unknown);
    let said = node.status().last_trouble.unwrap_or_default();
    assert!(said.contains("replicated"), "{said}");
    // The entry is in the log and arrives; whether it survives depends on the standby.
    a.read_to(Place(2));
    // A question for the end whose commit was not replicated gets no answer.
    a.log_asks();
    server.wait_for(waits, "1");
    server.sql(&format!("SELECT pg_cancel_backend(pid) {writers}"));
    let answered = a.until(|reader, _| reader.ends.last().copied());
    assert_eq!(answered.1, None);
    // The standby takes over without the entry: another history.
    server.stop();
    standby.start_again();
    standby.promote();
    standby.wait_for("SELECT pg_is_in_recovery()", "f");
    assert_eq!(standby.sql("SELECT place FROM wellspring.ws_end WHERE log = 'main'"), "1");
    drop((a, node));
    server.down();
    standby.down();
}
