//! Views of logs that are emptied, dropped and created again.

use super::*;
use crate::access::view::Access;
use crate::config::HostConfig;
use crate::view::{Live, ViewSlot};

/// A node over this folder, with a view of `main`.
fn open(data: &Path) -> (Node, Arc<ViewSlot<Access>>) {
    let config = HostConfig::for_tests(&["--data", data.to_str().expect("a path")]);
    let node = config.node(crate::clock::system());
    let slot = ViewSlot::new(|| Ok(()));
    node.attach(MAIN, Arc::clone(&slot) as _).expect("a view");
    (node, slot)
}

fn shown(slot: &ViewSlot<Access>) -> Arc<Live<Access>> {
    slot.live().expect("a view")
}

#[test]
fn a_log_that_could_not_be_emptied_keeps_its_view() {
    let dir = tempfile::tempdir().unwrap();
    let (node, slot) = open(dir.path());
    let before = shown(&slot);
    let way = dir.path().join("logs").join(format!("{DROPPED}1-{MAIN}/in the way"));
    fs::create_dir_all(&way).unwrap();
    assert!(matches!(node.empty(MAIN), Err(NodeError::Io { .. })));
    assert!(Arc::ptr_eq(&before, &shown(&slot)), "what is folded is still true of the log");
    node.empty(MAIN).expect("nothing is in the way of another name");
    let after = shown(&slot);
    assert!(!Arc::ptr_eq(&before, &after) && before.is_closed() && !after.is_closed());
}

#[test]
fn a_log_that_is_emptied_has_a_view_at_every_moment() {
    let dir = tempfile::tempdir().unwrap();
    let (node, slot) = open(dir.path());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(slot.live().is_some(), "readers would be turned away");
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        (0..20).for_each(|_| node.empty(MAIN).expect("an empty log"));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_dropped_log_has_no_view_until_it_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let (node, slot) = open(dir.path());
    node.drop_log(MAIN).expect("it is dropped");
    assert!(slot.live().is_none());
    assert!(node.create(MAIN).expect("it is made"));
    assert!(!shown(&slot).is_closed());
    assert_eq!(node.views().iter().filter(|(log, ..)| log == MAIN).count(), 1);
}

#[test]
fn a_log_has_no_two_views_of_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _slot) = open(dir.path());
    let second = ViewSlot::<Access>::new(|| Ok(()));
    let refused = node.attach(MAIN, Arc::clone(&second) as _).expect_err("their snapshots are one");
    assert!(refused.to_string().contains("already has a view access"), "{refused}");
    assert!(second.live().is_none());
    node.create("other").expect("another log");
    node.attach("other", second).expect("another log, another snapshot");
}
