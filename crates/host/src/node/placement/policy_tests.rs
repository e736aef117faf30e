//! What placement decides, in single cases and over drawn courses of events.

use super::*;
use wellspring_types::random::SplitMix64;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A cluster whose nodes do at once what they are told.
struct World {
    placer: Placer,
    nodes: Vec<LivingNode>,
    logs: Vec<PlacedLog>,
    now: Duration,
    epoch: u64,
    moves: Vec<(Duration, Move)>,
}

fn living(name: &str) -> LivingNode {
    LivingNode { node: name.to_owned(), ..LivingNode::default() }
}

impl World {
    fn new(nodes: usize, logs: usize) -> World {
        World {
            placer: Placer::default(),
            nodes: NAMES[..nodes].iter().map(|name| living(name)).collect(),
            logs: (0..logs).map(|at| log(&format!("l{at}"), 0)).collect(),
            now: Duration::ZERO,
            epoch: 0,
            moves: Vec::new(),
        }
    }

    /// Half a second passes; the moves that are carried out.
    fn step(&mut self) -> Vec<Move> {
        self.now += Duration::from_millis(500);
        let moves = self.placer.moves("a", &self.nodes, &self.logs, self.now);
        for moved in &moves {
            self.epoch += 1;
            for node in &mut self.nodes {
                node.leads.remove(&moved.log);
                if node.node == moved.to {
                    node.leads.insert(moved.log.clone(), self.epoch);
                }
            }
            self.moves.push((self.now, moved.clone()));
        }
        moves
    }

    fn run(&mut self, seconds: u64) -> usize {
        (0..2 * seconds).map(|_| self.step().len()).sum()
    }

    fn counts(&self) -> Vec<usize> {
        let mut counts: Vec<usize> = self.nodes.iter().map(|node| node.leads.len()).collect();
        counts.sort_unstable();
        counts
    }

    fn leader(&self, log: &str) -> Option<&str> {
        let leads = |node: &&LivingNode| node.leads.contains_key(log);
        self.nodes.iter().find(leads).map(|node| node.node.as_str())
    }
}

fn log(name: &str, rate: u64) -> PlacedLog {
    PlacedLog { log: name.to_owned(), rate, pin: None, told: None }
}

#[test]
fn a_fresh_cluster_is_balanced_at_once_and_stays_as_it_is() {
    let mut world = World::new(3, 10);
    assert_eq!(world.step().len(), 10);
    assert_eq!(world.counts(), [3, 3, 4]);
    let mut random = SplitMix64::new(1);
    for _ in 0..3600 {
        world.logs.iter_mut().for_each(|log| log.rate = random.next_u64() % 3);
        assert_eq!(world.step(), [], "noise moves nothing");
    }
    let mut world = World::new(3, 1);
    world.step();
    assert_eq!(world.leader("l0"), Some("a"), "the only log is led by the placer");
}

#[test]
fn nodes_that_come_later_get_their_part_in_turns() {
    let mut world = World::new(1, 9);
    world.step();
    world.nodes.extend([living("b"), living("c")]);
    assert_eq!(world.run(29), 0, "nothing is moved for what may pass");
    assert_eq!(world.run(60), 6);
    assert_eq!(world.counts(), [3, 3, 3]);
    let times: Vec<Duration> = world.moves[9..].iter().map(|(at, _)| *at).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= BALANCE_PAUSE), "{times:?}");
}

#[test]
fn three_hot_logs_are_led_by_three_nodes() {
    let mut world = World::new(1, 8);
    world.logs.iter_mut().take(3).for_each(|log| log.rate = 2_000);
    world.step();
    world.nodes.extend([living("b"), living("c")]);
    world.run(120);
    let leaders: BTreeSet<_> = (0..3).map(|at| world.leader(&format!("l{at}"))).collect();
    assert_eq!(leaders.len(), 3, "{leaders:?}");
    assert!(world.moves.len() <= 8 + 2 + 5, "{:?}", world.moves);
    assert_eq!(world.run(600), 0);
}

#[test]
fn one_hot_log_is_not_moved_around() {
    let mut world = World::new(3, 1);
    world.step();
    world.logs[0].rate = 5_000;
    assert_eq!(world.run(3_600), 0, "another node would have as much to do");
}

#[test]
fn a_node_is_relieved_though_a_busier_one_cannot_be() {
    let mut world = World::new(2, 4);
    world.logs = [("l0", 1_000), ("l1", 300), ("l2", 300), ("l3", 300)]
        .map(|(name, rate)| log(name, rate))
        .to_vec();
    world.run(1);
    assert_eq!(world.counts(), [1, 3]);
    world.nodes.push(living("c"));
    world.run(60);
    assert_eq!(world.counts(), [1, 1, 2]);
}

#[test]
fn leads_of_a_dead_node_go_to_fit_ones_at_once() {
    let mut world = World::new(3, 6);
    world.step();
    world.nodes[1].unfit.insert("l2".to_owned());
    let dead = world.nodes.remove(2);
    let moves = world.step();
    assert_eq!(moves.len(), dead.leads.len());
    assert!(moves.iter().all(|moved| moved.reason == MoveReason::Unled));
    assert!((0..6).all(|at| world.leader(&format!("l{at}")).is_some()));
    // An unfit node keeps a lead only as long as no other node is fit.
    world.nodes[0].unfit.insert("l2".to_owned());
    world.nodes[0].leads.insert("l2".to_owned(), 99);
    world.nodes[1].leads.remove("l2");
    assert_eq!(world.step(), []);
    world.nodes[1].unfit.clear();
    let moves = world.step();
    assert_eq!((moves.len(), &*moves[0].log, &*moves[0].to), (1, "l2", "b"));
}

#[test]
fn a_node_that_did_not_take_a_lead_is_not_asked_again_soon() {
    let mut world = World::new(2, 1);
    world.nodes[0].leads.insert("l1".to_owned(), 1);
    world.logs.push(log("l1", 9));
    let moves = world.placer.moves("a", &world.nodes, &world.logs, world.now);
    assert_eq!(moves[0].to, "b");
    world.logs[0].told = Some("b".to_owned());
    assert_eq!(
        world.placer.moves("a", &world.nodes, &world.logs, world.now),
        [],
        "it is on its way"
    );
    world.logs[0].told = None;
    world.placer.refused("l0", "b", world.now);
    assert_eq!(world.step()[0].to, "a");
    world.nodes[0].leads.remove("l0");
    world.now += REFUSED_FOR;
    assert_eq!(world.step()[0].to, "b");
}

#[test]
fn a_pinned_log_is_led_where_it_is_pinned_whenever_that_is_possible() {
    let mut world = World::new(3, 4);
    world.step();
    world.logs[0].pin = Some("c".to_owned());
    world.logs[0].rate = 9_000;
    world.run(1);
    assert_eq!(world.leader("l0"), Some("c"));
    world.run(120);
    assert_eq!(world.leader("l0"), Some("c"), "balance moves others");
    let pin = world.nodes.pop().unwrap();
    world.run(1);
    assert!(world.leader("l0").is_some(), "another one leads it meanwhile");
    world.nodes.push(living(&pin.node));
    world.nodes[2].unfit.insert("l0".to_owned());
    world.run(1);
    assert_ne!(world.leader("l0"), Some("c"), "its copy is behind");
    world.nodes[2].unfit.clear();
    world.run(1);
    assert_eq!(world.leader("l0"), Some("c"));
}

/// Nodes die and come back, rates change, copies fall behind, pins come and go.
#[test]
fn whatever_happens_leads_are_with_fit_nodes_and_do_not_flap() {
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut draw = |below: u64| random.next_u64() % below;
        let mut world = World::new(3, 1 + draw(12) as usize);
        let mut away: Vec<LivingNode> = Vec::new();
        for _ in 0..2_000 {
            match draw(200) {
                0 if world.nodes.len() > 1 => {
                    let at = 1 + draw(world.nodes.len() as u64 - 1) as usize;
                    away.push(world.nodes.remove(at));
                }
                1 | 2 if !away.is_empty() => {
                    let back = away.remove(0);
                    world.nodes.push(living(&back.node));
                }
                3 => {
                    let at = draw(world.logs.len() as u64) as usize;
                    world.logs[at].rate = draw(3_000);
                }
                4 => {
                    let at = draw(world.nodes.len() as u64) as usize;
                    let log = format!("l{}", draw(12));
                    if !world.nodes[at].unfit.remove(&log) {
                        world.nodes[at].unfit.insert(log);
                    }
                }
                5 => {
                    let at = draw(world.logs.len() as u64) as usize;
                    let pin = (draw(2) == 0).then(|| NAMES[draw(3) as usize].to_owned());
                    world.logs[at].pin = pin;
                }
                _ => {}
            }
            world.step();
            for log in &world.logs {
                let fit = |node: &LivingNode| !node.unfit.contains(&log.log);
                let leader = world.nodes.iter().find(|node| node.leads.contains_key(&log.log));
                let any_fit = world.nodes.iter().any(fit);
                assert!(!any_fit || leader.is_some_and(fit), "seed {seed}: {log:?}");
                let pin = world.nodes.iter().find(|node| Some(&node.node) == log.pin.as_ref());
                if let Some(pin) = pin.filter(|pin| fit(pin)) {
                    assert_eq!(leader, Some(pin), "seed {seed}: {log:?}");
                }
            }
        }
        let balanced: Vec<_> =
            world.moves.iter().filter(|(_, moved)| moved.reason == MoveReason::Balance).collect();
        for (n, (at, moved)) in balanced.iter().enumerate() {
            for (before, other) in &balanced[..n] {
                let apart = *at - *before;
                assert!(apart >= BALANCE_PAUSE, "seed {seed}");
                assert!(moved.log != other.log || apart >= MOVES_AGAIN, "seed {seed}: {moved:?}");
            }
        }
        // Left alone it comes to rest, and no move would help any more.
        world.run(1_300);
        assert_eq!(world.run(600), 0, "seed {seed}: {:?}", world.moves.last());
    }
}
