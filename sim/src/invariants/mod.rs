//! The invariants checked after every step, one promise per file.

mod accepted_add_up;
mod acked_is_kept;
mod copies_are_equal;
mod definite;
mod done_once;
mod durable_stays;
mod fences_hold;
mod fresh_end;
mod links_lead;
mod one_leader;
mod one_winner;
mod only_grows;
mod opens;
mod pieces_in_order;
mod readable;
mod refused_is_absent;
mod rests_on_what_is_there;
mod rights_are_passed_last;
mod same_bytes;
mod same_past;
mod time_never_goes_back;
mod told_of_everything;
mod verifies;
mod whole_requests;

use crate::facts::News;
use crate::world::World;

/// A promise to check.
pub trait Invariant {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Processes what happened.
    ///
    /// # Errors
    /// How the promise was broken.
    fn hear(&mut self, news: &News, world: &World) -> Result<(), String>;

    /// Checks whenever everything has recovered.
    ///
    /// # Errors
    /// How the promise was broken.
    fn when_well(&mut self, _world: &World) -> Result<(), String> {
        Ok(())
    }

    /// Checks once more at the end.
    ///
    /// # Errors
    /// How the promise was broken.
    fn at_the_end(&mut self, _world: &World) -> Result<(), String> {
        Ok(())
    }
}

/// All invariants.
#[must_use]
pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::<readable::Readable>::default(),
        Box::<same_bytes::SameBytes>::default(),
        Box::<whole_requests::WholeRequests>::default(),
        Box::<one_winner::OneWinner>::default(),
        Box::<done_once::DoneOnce>::default(),
        Box::<pieces_in_order::PiecesInOrder>::default(),
        Box::<refused_is_absent::RefusedIsAbsent>::default(),
        Box::<acked_is_kept::AckedIsKept>::default(),
        Box::<only_grows::OnlyGrows>::default(),
        Box::<time_never_goes_back::TimeNeverGoesBack>::default(),
        Box::<one_leader::OneLeader>::default(),
        Box::<fences_hold::FencesHold>::default(),
        Box::<rights_are_passed_last::RightsArePassedLast>::default(),
        Box::<told_of_everything::ToldOfEverything>::default(),
        Box::<fresh_end::FreshEnd>::default(),
        Box::<links_lead::LinksLead>::default(),
        Box::<definite::Definite>::default(),
        Box::<same_past::SamePast>::default(),
        Box::<opens::Opens>::default(),
        Box::<durable_stays::DurableStays>::default(),
        Box::<copies_are_equal::CopiesAreEqual>::default(),
        Box::<verifies::Verifies>::default(),
        Box::<rests_on_what_is_there::RestsOnWhatIsThere>::default(),
        Box::<accepted_add_up::AcceptedAddUp>::default(),
    ]
}
