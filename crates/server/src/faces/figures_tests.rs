//! The names of all figures of a server.

use crate::start;
use wellspring_host::stats::family::Kind;

#[test]
fn names_are_unique_and_say_their_unit_and_kind() {
    let dir = tempfile::tempdir().unwrap();
    let server = start::for_tests(dir.path(), &[]);
    let host = &server.host;
    let families = host.figures();
    let mut names = std::collections::BTreeSet::new();
    for family in &families {
        let name = &*family.name;
        assert!(names.insert(name), "{name} comes twice");
        assert!(name.starts_with("wellspring_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == Kind::Counter, "{name}");
        assert!(family.help.ends_with('.'), "{name}: {}", family.help);
        for word in ["microseconds", "milliseconds", "_us", "_ms", "kilobytes"] {
            assert!(!name.contains(word), "{name} is not in a base unit");
        }
    }
    for name in ["wellspring_build_info", "wellspring_log_barrier_seconds", "process_threads"] {
        assert!(names.contains(name), "{name}");
    }
    host.node.close();
}

/// The console names the routes whose requests it counts and times, and knows no other face.
#[test]
fn every_route_that_the_console_samples_is_there() {
    let names: Vec<String> =
        super::every_route().map(|route| format!("{} {}", route.method, route.path)).collect();
    for sampled in wellspring_face_console::sampled_routes() {
        assert!(names.iter().any(|name| name == sampled), "{sampled} is no route");
    }
}
