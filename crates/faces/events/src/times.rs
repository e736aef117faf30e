//! Reads by time: times become positions once, and the answer names them.

use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{ReadError, Snapshot, TimeSearch, Work};
use wellspring_types::Position;
use wellspring_types::moment::TimeRange;

/// The positions that the times of a read have become: of the first event that was recorded then or
/// later, or the one after the head if there is none yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PositionsOfTimes {
    /// Inclusive.
    pub(crate) since: Option<Position>,
    /// Exclusive.
    pub(crate) until: Option<Position>,
}

impl PositionsOfTimes {
    /// Looks up the positions of times.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) async fn find(
        job: &mut Job,
        snapshot: &Snapshot,
        times: TimeRange,
    ) -> Result<PositionsOfTimes, Box<Problem>> {
        let mut found = PositionsOfTimes::default();
        for (time_us, position) in
            [(times.since_us, &mut found.since), (times.until_us, &mut found.until)]
        {
            let Some(time_us) = time_us else { continue };
            let search = Searching { search: snapshot.first_since(time_us), found: 0 };
            *position = Some(job.run(Cost::Cheap, search).await?.found);
        }
        Ok(found)
    }

    /// The position after which a read begins, of this one and that which was asked for.
    pub(crate) fn after(&self, asked: Option<Position>) -> Option<Position> {
        let since = self.since.map(|since| since - 1);
        asked.max(since)
    }

    /// The snapshot without what is too late.
    pub(crate) fn of(&self, snapshot: Snapshot) -> Snapshot {
        self.until.map_or_else(|| snapshot.clone(), |until| snapshot.up_to(until - 1))
    }

    /// Appends them as members of an answer.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        let named = [(&b",\"since\":"[..], self.since), (b",\"until\":", self.until)];
        for (name, position) in named {
            if let Some(position) = position {
                out.extend_from_slice(name);
                push_u64(out, position);
            }
        }
    }
}

/// A search in progress.
struct Searching {
    search: TimeSearch,
    found: Position,
}

impl Task for Searching {
    fn proceed(&mut self, mut work: Work) -> Result<Progress, Box<Problem>> {
        match self.search.step(&mut work) {
            Ok(found) => {
                self.found = found;
                Ok(Progress::Done)
            }
            Err(ReadError::Stopped(_)) => Ok(Progress::More),
            Err(error) => Err(error.into()),
        }
    }
}
