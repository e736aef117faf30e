//! The shell around a view, with the links in it.
#![allow(clippy::disallowed_methods)]

use super::execute::CommandResults;
use super::short_links::{Command, Links, Naming, Outcome, Refusal, code};
use super::snapshot::{FoundSnapshot, SnapshotFile};
use super::{ExecuteError, Live, NotFresh};
use crate::kept_file::{FileCheck, KeptFile};
use crate::view::contract::View;
use crate::wire::effects::{Effects, StepRefusal};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{Append, AppendError, CommitOn, EncodedEvents, Log, Options, RequestKey};
use wellspring_types::Event;

const SOON: Duration = Duration::from_secs(20);

struct World {
    log: Log,
    live: Arc<Live<Links>>,
}

impl World {
    fn open(dir: &Path) -> World {
        World::over(Log::open(dir, Options::default()).unwrap(), dir)
    }

    fn over(log: Log, dir: &Path) -> World {
        let live = Live::open(log.clone(), dir, (), crate::clock::system()).unwrap();
        World { log, live }
    }

    fn close(self) {
        self.log.close();
        self.live.close();
    }

    async fn execute(&self, commands: &[Command]) -> CommandResults<Links> {
        self.live.execute(&Effects::default(), commands, None, CommitOn::ThisThread).await.unwrap()
    }

    async fn list(&self) -> String {
        let folded = self.live.caught_up(self.log.head(), SOON).await.unwrap();
        format!("{:?}", folded.list())
    }
}

fn create(url: &str, naming: Naming) -> Command {
    Command::Create { url: url.into(), naming }
}

fn append(log: &Log, event: &Event) {
    let mut events = EncodedEvents::new();
    events.push(&event.as_ref()).unwrap();
    log.append(Append { events, ..Append::default() }).unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn an_answer_is_followed_by_reads_that_show_it() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        for n in 0..300 {
            let url = format!("http://example.com/{n}");
            let executed = world.execute(&[create(&url, Naming::Automatic)]).await;
            let [Outcome::Created(code)] = executed.outcomes[..] else { panic!("not created") };
            assert_eq!(world.live.folded().unwrap().url(code), Some(url), "it is shown");
            assert!(executed.appended.is_some_and(|a| a.last <= world.live.position()));
        }
    });
    world.close();
}

#[test]
fn commands_in_one_request_see_each_other_and_stop_at_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        let alias = |text| create("http://a.example", Naming::Alias(code(text)));
        let commands = [alias("one"), alias("two"), alias("one"), alias("three")];
        let executed = world.execute(&commands).await;
        assert_eq!(executed.outcomes.len(), 2);
        assert_eq!(executed.refused, Some(Refusal::AliasTaken(code("one"))));
        assert!(world.live.folded().unwrap().url(code("three")).is_none());
        // More than fit into one append.
        let many: Vec<Command> =
            (0..900).map(|_| create("http://b.example", Naming::Automatic)).collect();
        let executed = world.execute(&many).await;
        assert_eq!((executed.outcomes.len(), executed.refused), (900, None));
    });
    world.close();
}

#[test]
fn decisions_at_once_follow_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        let on = CommitOn::JournalThread;
        let local = tokio::task::LocalSet::new();
        let mut tasks = Vec::new();
        for n in 0..200 {
            let live = Arc::clone(&world.live);
            let naming = match n % 4 {
                0 => Naming::Alias(code(&format!("alias{}", n / 16))),
                1 => Naming::Deterministic,
                _ => Naming::Automatic,
            };
            let command = create(&format!("http://example.com/{}", n % 8), naming);
            tasks.push(local.spawn_local(async move {
                live.execute(&Effects::default(), &[command], None, on).await.unwrap()
            }));
        }
        let mut created = Vec::new();
        local
            .run_until(async {
                for task in tasks {
                    let executed = task.await.unwrap();
                    match (&executed.outcomes[..], executed.refused) {
                        ([Outcome::Created(code)], None) => created.push(*code),
                        ([Outcome::Existing(code)], None) => {
                            // Reported only once it is durable.
                            assert!(world.live.folded().unwrap().url(*code).is_some());
                        }
                        ([], Some(Refusal::AliasTaken(_))) => {}
                        other => panic!("{other:?}"),
                    }
                }
            })
            .await;
        // 100 automatic ones, 13 aliases, and deterministic ones for the URLs 1 and 5.
        assert_eq!(created.len(), 115);
        created.sort();
        created.dedup();
        assert_eq!(created.len(), 115);
    });
    world.close();
}

#[test]
fn what_came_to_nothing_is_not_decided_against() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(5);
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    let world = World::over(log, dir.path());
    runtime().block_on(async {
        world.execute(&[create("http://a.example", Naming::Automatic)]).await;
        let held: u64 = storage.contents().values().map(|file| file.len() as u64).sum();
        let full = Faults { capacity_bytes: Some(held), ..Faults::default() };
        let long = format!("http://a.example/{}", "x".repeat(2_000));
        for round in 0..4 {
            storage.set_faults(full);
            // The segment may have room left, but not for ever.
            let mut number = 0;
            let alias = loop {
                number += 1;
                let naming = Naming::Alias(code(&format!("a{round}x{number}")));
                let alias = [create(&long, naming)];
                match world
                    .live
                    .execute(&Effects::default(), &alias, None, CommitOn::ThisThread)
                    .await
                {
                    Ok(executed) => assert_eq!(executed.refused, None),
                    Err(ExecuteError::Append(StepRefusal {
                        error: AppendError::StorageFull,
                        ..
                    })) => break alias,
                    Err(other) => panic!("{other:?}"),
                }
            };
            storage.set_faults(Faults::default());
            let executed = world.execute(&alias).await;
            assert_eq!((executed.outcomes.len(), executed.refused), (1, None));
        }
    });
    world.close();
}

#[test]
fn foreign_appends_are_seen_and_the_command_is_decided_again() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        for n in 0..50 {
            let alias = format!("other{n}");
            let data = r#"{"url":"http://other.example","chosen":"alias"}"#;
            let tag = format!("link:{alias}");
            append(&world.log, &Event::json("LinkCreated", &[&tag], data));
            // Folded or not: the condition detects it.
            let command = create("http://mine.example", Naming::Alias(code(&alias)));
            let executed = world.execute(&[command]).await;
            assert_eq!(executed.refused, Some(Refusal::AliasTaken(code(&alias))));
        }
    });
    world.close();
}

#[test]
fn rubbish_of_others_forbids_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    append(&world.log, &Event::json("LinksOpened", &["links"], r#"{"key":"zz"}"#));
    append(&world.log, &Event::json("LinkCreated", &["link:bar"], "{}"));
    append(&world.log, &Event::json("LinkDeleted", &["link:baz"], "{}"));
    runtime().block_on(async {
        for naming in [
            Naming::Automatic,
            Naming::Alias(code("bar")),
            Naming::Alias(code("baz")),
            Naming::Deterministic,
        ] {
            let executed = world.execute(&[create("http://a.example", naming)]).await;
            assert_eq!((executed.outcomes.len(), executed.refused), (1, None), "{naming:?}");
        }
        let executed = world.execute(&[Command::Delete { code: code("baz") }]).await;
        assert_eq!(executed.outcomes, [Outcome::Deleted(code("baz"))]);
    });
    world.close();
}

#[test]
fn a_retry_with_its_key_gets_the_first_answer() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        let key = |digest| Some(RequestKey { key: "k".into(), digest: [digest; 16] });
        let command = [create("http://a.example", Naming::Alias(code("mine")))];
        let on = CommitOn::ThisThread;
        let first = world.live.execute(&Effects::default(), &command, key(1), on).await.unwrap();
        let again = world.live.execute(&Effects::default(), &command, key(1), on).await.unwrap();
        assert_eq!(first.outcomes, again.outcomes);
        assert!(again.appended.unwrap().replayed && !first.appended.unwrap().replayed);
        let other = world.live.execute(&Effects::default(), &command, key(2), on).await;
        assert!(matches!(
            other,
            Err(ExecuteError::Append(StepRefusal { error: AppendError::KeyReused { .. }, .. }))
        ));
    });
    world.close();
}

#[test]
fn a_command_that_came_to_no_event_keeps_its_answer_under_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        let key = || Some(RequestKey { key: "k".into(), digest: [1; 16] });
        let command = [create("http://a.example", Naming::Deterministic)];
        let on = CommitOn::ThisThread;
        let made = world.live.execute(&Effects::default(), &command, None, on).await.unwrap();
        let [Outcome::Created(code)] = made.outcomes[..] else { panic!("not created") };
        let head = world.log.head();
        let again = world.live.execute(&Effects::default(), &command, None, on).await.unwrap();
        assert_eq!(again.outcomes, [Outcome::Existing(code)]);
        assert_eq!(world.log.head(), head, "without a key nothing is kept");
        let found = world.live.execute(&Effects::default(), &command, key(), on).await.unwrap();
        assert_eq!(found.outcomes, [Outcome::Existing(code)]);
        world.execute(&[Command::Delete { code }]).await;
        let head = world.log.head();
        let retry = world.live.execute(&Effects::default(), &command, key(), on).await.unwrap();
        assert_eq!(retry.outcomes, [Outcome::Existing(code)], "no other link is made");
        assert!(retry.appended.unwrap().replayed);
        assert_eq!(world.log.head(), head);
    });
    world.close();
}

#[test]
fn a_snapshot_is_used_and_a_bad_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    let path = dir.path().join("views/links.snapshot");
    let expected = runtime().block_on(async {
        let many: Vec<Command> = (0..12_000)
            .map(|n| create(&format!("http://example.com/{n}"), Naming::Automatic))
            .collect();
        world.execute(&many).await;
        let change = Command::Change { code: code("none"), url: "http://a.example".into() };
        let executed = world.execute(&[change]).await;
        assert_eq!(executed.refused, Some(Refusal::Unknown(code("none"))));
        world.list().await
    });
    world.close();
    let sound = std::fs::read(&path).expect("a snapshot was written at the end");

    let reopened = |expected_snapshot: bool| {
        let world = World::open(dir.path());
        let list = runtime().block_on(world.list());
        assert_eq!(world.live.progress().snapshot > 0, expected_snapshot);
        assert_eq!(list, expected);
        // Without another snapshot.
        world.log.close();
        world.live.discard();
    };
    reopened(true);
    for at in [3, 9, 13, 21, sound.len() / 2, sound.len() - 2] {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x20;
        std::fs::write(&path, damaged).unwrap();
        reopened(false);
    }
    std::fs::write(&path, &sound[..sound.len() / 3]).unwrap();
    reopened(false);
    std::fs::remove_file(&path).unwrap();
    reopened(false);
}

#[test]
fn waiters_for_a_view_that_has_ended_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    world.live.discard();
    let event = Event::json("LinksOpened", &["links"], "{}");
    // More than any waiting caller would fold.
    (0..3_000).for_each(|_| append(&world.log, &event));
    runtime().block_on(async {
        let waited = world.live.caught_up(world.log.head(), SOON).await;
        assert!(matches!(waited, Err(NotFresh::Closed)));
    });
}

#[test]
fn a_command_that_hangs_on_another_when_the_view_ends_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    runtime().block_on(async {
        world.live.caught_up(0, SOON).await.unwrap();
        world.live.discard();
        let event = Event::json("Other", &[], "{}");
        // More than any waiting caller would fold.
        (0..3_000).for_each(|_| append(&world.log, &event));
        let command = [create("http://a.example", Naming::Alias(code("mine")))];
        let first =
            world.live.execute(&Effects::default(), &command, None, CommitOn::ThisThread).await;
        assert!(matches!(first, Err(ExecuteError::DurableNotShown(_, NotFresh::Closed))));
        // Refused because of an alias in an event that will never be folded.
        let effects = Effects::default();
        let second = world.live.execute(&effects, &command, None, CommitOn::ThisThread);
        let second = tokio::time::timeout(SOON, second).await.expect("it does not wait for ever");
        assert!(matches!(second, Err(ExecuteError::NotFresh(NotFresh::Closed))));
    });
}

#[test]
fn a_view_that_is_closed_before_it_is_rebuilt_never_answers() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    let data = r#"{"url":"http://other.example","chosen":"alias"}"#;
    for chunk in 0..10 {
        let mut events = EncodedEvents::new();
        for n in 0..1_000 {
            let tag = format!("link:c{}", chunk * 1_000 + n);
            events.push(&Event::json("LinkCreated", &[&tag], data).as_ref()).unwrap();
        }
        log.append(Append { events, ..Append::default() }).unwrap();
    }
    for round in 0..8 {
        let world = World::over(log.clone(), dir.path());
        std::thread::sleep(Duration::from_millis(round));
        world.live.discard();
        if let Some(folded) = world.live.folded() {
            assert_eq!(folded.count(), 10_000);
        }
    }
}

#[test]
fn a_snapshot_that_knows_more_than_the_log_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(5);
    let log = Log::open_on(Arc::new(storage.clone()), Options::default()).unwrap();
    let (file, mut view) = (SnapshotFile::new(dir.path(), "links", 1), Links::new());
    (0..60).for_each(|n| append(&log, &Event::json("Other", &[], &n.to_string())));
    let shorter = storage.contents();
    file.write(&log, 50, |out| Links::encode(view.folded(), out)).unwrap();
    assert!(file.read::<Links>(&log, &()).unwrap().is_some_and(|(_, position)| position == 50));
    append(&log, &Event::json("Other", &[], "60"));
    // The encoded bytes may include the last event.
    file.write(&log, 50, |out| Links::encode(view.folded(), out)).unwrap();
    view = file.read::<Links>(&log, &()).unwrap().unwrap().0;
    assert_eq!(view.folded().count(), 0);
    let shorter = SimulatedStorage::with_contents(5, &shorter);
    let shorter = Log::open_on(Arc::new(shorter), Options::default()).unwrap();
    assert_eq!(shorter.head(), 60);
    let refused = file.read::<Links>(&shorter, &()).map(|_| ()).unwrap_err();
    assert!(refused.contains("no event exists at its position 61"), "{refused}");
}

#[test]
fn a_damaged_snapshot_is_removed_and_its_view_writes_another() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::open(dir.path());
    let path = dir.path().join("views/links.snapshot");
    runtime().block_on(async {
        let urls = (0..200).map(|n| format!("http://example.com/{n}"));
        let many: Vec<Command> = urls.map(|url| create(&url, Naming::Automatic)).collect();
        world.execute(&many).await;
    });
    let written = || {
        let begun = std::time::Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < SOON, "no snapshot is written");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let file = || -> KeptFile {
        let mut found = FoundSnapshot::list(dir.path());
        assert_eq!((found.len(), found[0].view.as_str()), (1, "links"));
        let live = Arc::clone(&world.live);
        found.remove(0).kept_file("logs/main", move || live.renew_snapshot())
    };
    let check = |file: KeptFile| file.check(&mut |_| ControlFlow::Continue(())).unwrap();
    world.live.renew_snapshot();
    written();
    assert_eq!(file().name, "logs/main/views/links.snapshot");
    let len = std::fs::metadata(&path).unwrap().len() as usize;
    let places = [0, 7, 8, 12, 20, 28, len / 3, len / 2, len - 21, len - 12, len - 4, len - 1];
    for at in places {
        let mut damaged = std::fs::read(&path).unwrap();
        damaged[at] ^= 0x04;
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(check(file()), FileCheck::Mended, "byte {at} of {len}");
        written();
        assert_eq!(check(file()), FileCheck::Sound, "byte {at} of {len}");
    }
    // One that is removed or replaced meanwhile is left alone.
    let late = file();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(check(late), FileCheck::Sound);
    for short in [0, 3, 20, 50] {
        std::fs::write(&path, vec![0; short]).unwrap();
        assert_eq!(check(file()), FileCheck::Mended, "{short} bytes");
        written();
    }
    world.close();
}
