//! What kind of history a seed is. Each has its own mixture of faults: a history in which
//! everything goes wrong all the time reaches less than many in which two or three things do.

use crate::dice::Dice;
use std::time::Duration;
use wellspring_log::shared::simulated::Settings;
use wellspring_log::shared::{Claims, SharedLimits};

/// The odds of one history. Weights are relative; permilles are of 1,000.
#[derive(Debug, Clone)]
pub struct Mood {
    /// How many nodes.
    pub nodes: usize,
    /// What the engine is like.
    pub engine: Settings,
    /// After so long a silence a leader is taken for gone.
    pub lead_timeout: Duration,
    /// Whether nodes claim the lead by themselves.
    pub claims: Claims,
    /// How many steps before everything is healed.
    pub steps: u64,
    /// Longest time between two steps, usually.
    pub tick_us: u64,
    /// Offers that get lost.
    pub lose: u64,
    /// Offers that are repeated.
    pub duplicate: u64,
    /// Offers, outcomes and questions of which the node is told that nothing is known.
    pub unknown: u64,
    /// Offers that are overtaken.
    pub reorder: u64,
    /// Weight of processes that pause.
    pub pause: u64,
    /// Weight of processes that die.
    pub crash: u64,
    /// Of those that die: those whose disk rots meanwhile.
    pub rot: u64,
    /// Weight of nodes cut off from the engine.
    pub cut_off: u64,
    /// Weight of wall clocks that are set.
    pub clock_step: u64,
    /// Weight of disks that fill up, or of other trouble with them.
    pub disk_trouble: u64,
    /// Weight of a node told to take the lead.
    pub take_lead: u64,
    /// Weight of a node told to give it up.
    pub resign: u64,
    /// Weight of processes that end as they should.
    pub leave: u64,
    /// Requests with data that needs several parts or a segment of its own.
    pub large: u64,
}

impl Mood {
    /// The mood of a seed.
    #[must_use]
    pub fn draw(dice: &mut Dice) -> Mood {
        let mut odds =
            |often: u64, most: u64| if dice.chance(often) { dice.below(most) + 1 } else { 0 };
        let (lose, duplicate) = (odds(600, 200), odds(600, 200));
        let (unknown, reorder) = (odds(600, 200), odds(600, 300));
        let (pause, crash, rot) = (odds(500, 20), odds(600, 20), odds(500, 600));
        let (cut_off, clock_step) = (odds(400, 20), odds(400, 20));
        let (disk_trouble, mut take_lead, leave) = (odds(400, 20), odds(500, 30), odds(400, 10));
        let resign = odds(300, 15);
        let large = odds(500, 700);
        let compares = dice.chance(300);
        let limits = SharedLimits {
            entry_bytes: [4096, 4096, 8192, 1 << 20][dice.index(4)],
            // An engine that compares refuses whatever is offered before the last offer has been
            // seen.
            window: if compares { 1 } else { [1, 2, 5, 8][dice.index(4)] },
            lead_timeout_min: Duration::from_millis(10),
        };
        let engine = Settings { limits, compares, elects: dice.chance(150) };
        let claims = if dice.chance(200) { Claims::WhenTold } else { Claims::BySilence };
        if claims == Claims::WhenTold {
            // Nobody would ever lead.
            take_lead += 10;
        }
        let lead_timeout_us = [20_000, 100_000, 400_000][dice.index(3)];
        Mood {
            nodes: [1, 2, 3, 3, 3, 3, 4, 5][dice.index(8)],
            engine,
            lead_timeout: Duration::from_micros(lead_timeout_us),
            claims,
            steps: 1500 + dice.below(3000),
            tick_us: lead_timeout_us / [20, 60, 200, 500][dice.index(4)],
            lose,
            duplicate,
            unknown,
            reorder,
            pause,
            crash,
            rot,
            cut_off,
            clock_step,
            disk_trouble,
            take_lead,
            resign,
            leave,
            large,
        }
    }
}
