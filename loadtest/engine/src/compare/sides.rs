//! What two sides measured in one step: the figures of their runs over all endpoints,
//! and of each endpoint by itself.
//!
//! The latencies of several endpoints are never pooled for a comparison. The median of a
//! half-and-half mix of a 0.1 ms and a 3 ms request lies where there are no answers at all, so
//! it jumps between the two from run to run and moves with the mix, not with the server.

use super::figures::Figures;
use super::interleave::Design;
use crate::result::Run;

/// One endpoint on both sides.
pub(super) struct Endpoint {
    pub(super) name: String,
    pub(super) a: Vec<Figures>,
    pub(super) b: Vec<Figures>,
}

/// Both sides of a step.
#[derive(Default)]
pub(super) struct Sides {
    pub(super) a: Vec<Figures>,
    pub(super) b: Vec<Figures>,
    /// The endpoints that both sides have, in the order of A; empty if neither has several.
    pub(super) endpoints: Vec<Endpoint>,
}

impl Sides {
    /// The figures of runs. Every run must be one that [`Figures::of`] takes.
    pub(super) fn of(a: &[&Run], b: &[&Run]) -> Self {
        let whole = |runs: &[&Run]| runs.iter().filter_map(|run| Figures::of(run)).collect();
        let (names_a, names_b) = (names(a.iter().copied()), names(b.iter().copied()));
        let several = names_a.len() > 1 || names_b.len() > 1;
        let common = names_a.into_iter().filter(|name| several && names_b.contains(name));
        let endpoints = common.map(|name| {
            let each = |runs: &[&Run]| {
                runs.iter().filter_map(|run| Figures::of_endpoint(run, name)).collect()
            };
            Endpoint { name: name.to_owned(), a: each(a), b: each(b) }
        });
        Sides { a: whole(a), b: whole(b), endpoints: endpoints.collect() }
    }

    /// With pairs, the longer side is cut to the length of the shorter one.
    pub(super) fn cut_to(mut self, design: Design) -> Self {
        if design == Design::Paired {
            let pairs = self.a.len().min(self.b.len());
            let each = self.endpoints.iter_mut().flat_map(|each| [&mut each.a, &mut each.b]);
            for runs in [&mut self.a, &mut self.b].into_iter().chain(each) {
                runs.truncate(pairs);
            }
        }
        self
    }
}

/// The names of the endpoints of runs, in the order of their first appearance.
pub(super) fn names<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for endpoint in runs.flat_map(|run| &run.endpoints) {
        if !names.contains(&endpoint.name.as_str()) {
            names.push(&endpoint.name);
        }
    }
    names
}
