//! The list of the suite's tests, from which they are run, documented and expanded.

use crate::JournalUnderTest;
use std::fmt::Write as _;

/// What a test requires of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// One node.
    OneNode,
    /// [`Sync::Interval`](wellspring_log::Sync::Interval): barriers later than the answers.
    DelayedBarriers,
    /// A disk that fills up on request ([`Harness::disk`](super::Harness::disk)).
    DiskFaults,
    /// At least three nodes that can be cut off from each other.
    SeveralNodes,
}

impl Need {
    /// The name in `conformance_tests!` and in `docs/conformance.md`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Need::OneNode => "one_node",
            Need::DelayedBarriers => "delayed_barriers",
            Need::DiskFaults => "disk_faults",
            Need::SeveralNodes => "several_nodes",
        }
    }
}

/// One test of the suite.
#[derive(Clone, Copy)]
pub struct Test {
    /// Its module.
    pub group: &'static str,
    /// The function's name.
    pub name: &'static str,
    /// What it requires of a journal.
    pub need: Need,
    /// Panics if the journal breaks the promise.
    pub run: fn(&dyn JournalUnderTest),
}

/// The list. `$then` gets the content of the braces, then the groups.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_list {
    ($then:ident $with:tt) => {
        $crate::$then! { $with
            conditions {
                one_node: [
                    every_verdict_and_read_equals_the_oracles
                    an_after_beyond_the_head_can_never_fail_yet
                ]
            }
            confirm {
                one_node: [
                    what_was_acknowledged_anywhere_is_confirmed_everywhere
                ]
                several_nodes: [
                    who_is_cut_off_confirms_nothing
                ]
            }
            copies {
                several_nodes: [
                    all_copies_hold_the_same_bytes
                    who_was_away_catches_up
                    a_damaged_copy_is_mended
                    half_a_request_is_shown_nowhere
                    subscribers_everywhere_go_on_while_the_lead_changes
                    a_copy_with_another_past_is_detached_and_can_be_read
                ]
            }
            crash {
                one_node: [
                    nothing_acknowledged_is_lost_and_nothing_is_half_there
                    with_conditions_of_the_largest_size_among_ordinary_requests_nothing_acknowledged_is_lost
                ]
                delayed_barriers: [
                    with_delayed_barriers_a_prefix_survives
                ]
                disk_faults: [
                    with_the_disk_full_and_descriptors_gone_now_and_then_nothing_acknowledged_is_lost
                    with_the_disk_full_among_conditions_of_the_largest_size_nothing_acknowledged_is_lost
                ]
            }
            hand_over {
                several_nodes: [
                    what_is_handed_over_is_stored_once_and_in_order
                ]
            }
            idempotence {
                one_node: [
                    a_request_key_returns_the_first_answer_and_survives_a_restart
                    a_retry_of_a_conditional_append_does_not_fail_on_itself
                    event_ids_make_a_retry_safe_and_are_unique
                    the_same_id_twice_in_one_request_is_refused
                    a_retry_that_overtakes_its_first_attempt_gets_the_same_answer
                ]
            }
            leadership {
                several_nodes: [
                    of_nodes_that_claim_at_once_one_leads
                    what_a_leader_offers_after_another_leads_is_never_there
                    what_arrived_before_the_next_claim_was_appended
                    a_leader_that_was_paused_appends_nothing_afterwards
                    of_offers_lost_doubled_and_late_each_counts_once_or_never
                    a_retry_is_recognised_by_the_next_leader
                    one_wins_each_key_while_the_lead_goes_round
                ]
            }
            race {
                one_node: [
                    eight_contenders_for_two_hundred_keys_have_one_winner_each
                    one_wins_where_the_largest_legal_conditions_contend_with_ordinary_ones
                    answers_of_concurrent_plain_appends_cover_the_log_without_gap_or_overlap
                ]
            }
            reads {
                one_node: [
                    a_snapshot_does_not_move
                    every_event_is_found_by_position_and_id_in_every_segment
                    types_and_tags_are_counted_and_paged
                ]
            }
            subscriptions {
                one_node: [
                    catch_up_and_live_have_no_seam_and_a_restart_resumes
                    a_subscriber_is_told_when_the_log_closes
                ]
            }
        }
    };
}

/// Expands every test of the suite as a `#[test]` of the calling module, for one journal.
///
/// `journal` is an expression that is a [`JournalUnderTest`](crate::JournalUnderTest).
/// Each of the other words is `yes`, or `no("…")` with the reason: see
/// [`Need`](crate::Need).
#[macro_export]
macro_rules! conformance_tests {
    (
        journal: $journal:expr,
        delayed_barriers: $delayed:ident $(($no_delay:literal))?,
        disk_faults: $faults:ident $(($no_faults:literal))?,
        several_nodes: $several:ident $(($one:literal))? $(,)?
    ) => {
        $crate::conformance_list! { conformance_groups {
            { $journal }
            { $delayed $($no_delay)? }
            { $faults $($no_faults)? }
            { $several $($one)? }
        } }
    };
}

/// A module for each group.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_groups {
    ($with:tt $($group:ident { $($need:ident: $names:tt)* })*) => {
        $(mod $group {
            #[allow(unused_imports)] // of a journal that is an expression of its own
            use super::*;
            $($crate::conformance_need! { $need $with $group $names })*
        })*
    };
}

/// Selects the value given for a need.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_need {
    (one_node { $journal:tt $($said:tt)* } $($tests:tt)*) => {
        $crate::conformance_functions! { { yes } $journal $($tests)* }
    };
    (delayed_barriers { $journal:tt $said:tt $faults:tt $several:tt } $($tests:tt)*) => {
        $crate::conformance_functions! { $said $journal $($tests)* }
    };
    (disk_faults { $journal:tt $delayed:tt $said:tt $several:tt } $($tests:tt)*) => {
        $crate::conformance_functions! { $said $journal $($tests)* }
    };
    (several_nodes { $journal:tt $delayed:tt $faults:tt $said:tt } $($tests:tt)*) => {
        $crate::conformance_functions! { $said $journal $($tests)* }
    };
}

/// The functions of a group with one need.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_functions {
    ({ yes } $journal:tt $group:ident [$($name:ident)*]) => {
        $(#[test]
        fn $name() {
            $crate::$group::$name(&$journal);
        })*
    };
    ({ no $why:literal } $journal:tt $group:ident [$($name:ident)*]) => {
        $(#[test]
        #[ignore = $why]
        fn $name() {
            panic!("this journal cannot be tested so: {}", $why);
        })*
    };
}

/// The list as values.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_values {
    ($with:tt $($group:ident { $($need:ident: [$($name:ident)*])* })*) => {
        &[$($($(Test {
            group: stringify!($group),
            name: stringify!($name),
            need: needed(stringify!($need)),
            run: $crate::$group::$name,
        },)*)*)*]
    };
}

const fn needed(name: &str) -> Need {
    match name.as_bytes() {
        b"one_node" => Need::OneNode,
        b"delayed_barriers" => Need::DelayedBarriers,
        b"disk_faults" => Need::DiskFaults,
        b"several_nodes" => Need::SeveralNodes,
        _ => panic!("a need that is not known"),
    }
}

/// All tests, in the order of the list.
#[must_use]
pub fn suite() -> &'static [Test] {
    const SUITE: &[Test] = conformance_list! { conformance_values {} };
    SUITE
}

/// The list as in `docs/conformance.md`.
#[must_use]
pub fn table() -> String {
    let mut table = String::from("| test | needs |\n|---|---|\n");
    for test in suite() {
        _ = writeln!(table, "| `{}::{}` | `{}` |", test.group, test.name, test.need.name());
    }
    table
}
