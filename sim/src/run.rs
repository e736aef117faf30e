//! Runs one seed to its verdict.

use crate::engine::{Engine, EngineKind};
use crate::invariants::{self, Invariant};
use crate::trace::Trace;
use crate::world::World;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use wellspring_journal_raft::plants as raft_plants;
use wellspring_log::plants;

/// A broken promise.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The invariant.
    pub invariant: &'static str,
    /// How it was broken.
    pub what: String,
    /// The step.
    pub step: u64,
}

/// The result of a seed.
pub struct Outcome {
    /// The whole history.
    pub trace: String,
    /// The violation, if any.
    pub violation: Option<Violation>,
    /// Steps taken.
    pub steps: u64,
    /// Entries in the shared log at the end.
    pub entries: u64,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics available to [`run`] instead of printing them. Called once per process.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string().replace('\n', " ")));
    }));
}

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// In the log.
    Log(plants::Plant),
    /// In the Raft engine.
    Raft(raft_plants::Plant),
}

impl Bug {
    /// Those that the simulator looks for over an engine, with their command-line names.
    #[must_use]
    pub fn all(kind: EngineKind) -> Vec<(&'static str, Bug)> {
        match kind {
            EngineKind::Simulated => {
                plants::Plant::ALL.iter().map(|bug| (bug.name(), Bug::Log(*bug))).collect()
            }
            EngineKind::Raft => {
                raft_plants::SIMULATED.iter().map(|(bug, name)| (*name, Bug::Raft(*bug))).collect()
            }
        }
    }

    fn plant(bug: Option<Bug>) {
        let (mut of_log, mut of_raft) = (None, None);
        match bug {
            Some(Bug::Log(bug)) => of_log = Some(bug),
            Some(Bug::Raft(bug)) => of_raft = Some(bug),
            None => {}
        }
        plants::plant(of_log);
        raft_plants::plant(of_raft);
    }
}

/// Runs a seed with this planted bug, or none. A panic is a violation.
#[must_use]
pub fn run(seed: u64, kind: EngineKind, bug: Option<Bug>, aloud: bool) -> Outcome {
    let trace = Rc::new(RefCell::new(Trace::new(aloud)));
    Bug::plant(bug);
    let mut reached = (0, 0);
    let mut world = World::new(seed, kind, Rc::clone(&trace));
    let result = catch_unwind(AssertUnwindSafe(|| {
        let result = history(&mut world, &mut invariants::all(), &mut reached);
        reached.1 = world.engine.entries();
        result
    }));
    // Nodes that broke a promise are not destroyed, because their behaviour is arbitrary.
    match result {
        Ok(Ok(())) => drop(world),
        _ => std::mem::forget(world),
    }
    Bug::plant(None);
    let violation = match result {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(_) => {
            let what = PANIC.with(|panic| panic.borrow_mut().take()).unwrap_or_default();
            Some(Violation { invariant: "no panic", what, step: reached.0 })
        }
    };
    let trace = trace.borrow().text().to_owned();
    Outcome { trace, violation, steps: reached.0, entries: reached.1 }
}

type Invariants = Vec<Box<dyn Invariant>>;

fn history(
    world: &mut World,
    invariants: &mut Invariants,
    reached: &mut (u64, u64),
) -> Result<(), Violation> {
    for node in 0..world.nodes.len() {
        world.start(node);
    }
    for _ in 0..world.mood.steps {
        world.step();
        reached.0 = world.step;
        check(world, invariants)?;
    }
    world.heal();
    recover(world, invariants, reached)?;
    world.last_requests();
    recover(world, invariants, reached)?;
    world.restart_all();
    recover(world, invariants, reached)?;
    let segments = world.nodes[0].log.as_ref().map_or(0, |log| log.segments());
    let (head, entries) = (world.nodes[0].learned, world.engine.entries());
    world.say(format_args!("all is well: {head} events, {segments} segments, {entries} entries"));
    if let Engine::Raft(group) = &world.engine {
        let [terms, changes, lost] = group.happened();
        world.say(format_args!("in all: {terms} terms, {changes} changes, {lost} WALs lost"));
    }
    for invariant in invariants.iter_mut() {
        invariant.at_the_end(world).map_err(|what| violation(&**invariant, what, world))?;
    }
    Ok(())
}

/// Runs without faults; returns how long recovery took.
fn recover(
    world: &mut World,
    invariants: &mut Invariants,
    reached: &mut (u64, u64),
) -> Result<(), Violation> {
    let mut missing = String::new();
    for _ in 0..world.patience() {
        let well = world.healthy_round();
        reached.0 = world.step;
        check(world, invariants)?;
        match well {
            Ok(()) => {
                for invariant in invariants.iter_mut() {
                    let looked = invariant.when_well(world);
                    looked.map_err(|what| violation(&**invariant, what, world))?;
                }
                return Ok(());
            }
            Err(what) => missing = what,
        }
    }
    Err(Violation { invariant: "progress", what: missing, step: world.step })
}

fn violation(invariant: &dyn Invariant, what: String, world: &World) -> Violation {
    Violation { invariant: invariant.name(), what, step: world.step }
}

fn check(world: &mut World, invariants: &mut Invariants) -> Result<(), Violation> {
    if let Engine::Raft(group) = &world.engine
        && let Some((invariant, what)) = group.broken()
    {
        return Err(Violation { invariant, what, step: world.step });
    }
    world.observe();
    let news = std::mem::take(&mut world.news);
    for invariant in invariants.iter_mut() {
        for piece in &news {
            invariant.hear(piece, world).map_err(|what| violation(&**invariant, what, world))?;
        }
    }
    Ok(())
}
