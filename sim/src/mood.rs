//! The mixture of faults of a seed. A history with all faults at once reaches less than many
//! histories with two or three kinds each.

use crate::dice::Dice;
use std::time::Duration;
use wellspring_log::shared::simulated::Settings;
use wellspring_log::shared::{Claims, Retention, SharedLimits};

/// The probabilities of one history. Weights are relative; probabilities are in permille.
#[derive(Debug, Clone)]
pub struct Mood {
    /// Number of nodes.
    pub nodes: usize,
    /// The engine's properties.
    pub engine: Settings,
    /// Silence after which a leader is considered gone.
    pub lead_timeout: Duration,
    /// Whether nodes claim the lead on their own.
    pub claims: Claims,
    /// Number of steps before all faults are removed.
    pub steps: u64,
    /// Usual maximum time between two steps.
    pub tick_us: u64,
    /// Lost offers.
    pub lose: u64,
    /// Repeated offers.
    pub duplicate: u64,
    /// Offers, outcomes and questions reported as unknown.
    pub unknown: u64,
    /// Overtaken offers.
    pub reorder: u64,
    /// Weight of pausing a process.
    pub pause: u64,
    /// Weight of killing a process.
    pub crash: u64,
    /// Of the killed ones: those whose disk rots meanwhile.
    pub rot: u64,
    /// Weight of disconnecting a node from the engine.
    pub cut_off: u64,
    /// Weight of setting a wall clock.
    pub clock_step: u64,
    /// Weight of disk trouble.
    pub disk_trouble: u64,
    /// Weight of asking a node to take the lead.
    pub take_lead: u64,
    /// Weight of asking a node to resign.
    pub resign: u64,
    /// Weight of shutting a process down.
    pub leave: u64,
    /// Weight of dropping entries that all copies hold.
    pub trim: u64,
    /// Requests with data that needs several parts or a separate segment.
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
        let trim = odds(400, 20);
        let compares = dice.chance(300);
        let unsynced_bytes = [1, 4096, 1 << 20][dice.index(3)];
        let retention = match trim {
            0 => Retention::Everything,
            _ => Retention::UntilCopied { unsynced_bytes, within: Duration::from_millis(5) },
        };
        let limits = SharedLimits {
            entry_bytes: [4096, 4096, 8192, 1 << 20][dice.index(4)],
            // An engine that compares refuses every offer made before the last one has been seen.
            window: if compares { 1 } else { [1, 2, 5, 8][dice.index(4)] },
            lead_timeout_min: Duration::from_millis(10),
            retention,
        };
        let engine = Settings { limits, compares, elects: dice.chance(150) };
        let claims = if dice.chance(200) { Claims::WhenTold } else { Claims::BySilence };
        if claims == Claims::WhenTold {
            // Otherwise no node would ever lead.
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
            trim,
            large,
        }
    }
}
