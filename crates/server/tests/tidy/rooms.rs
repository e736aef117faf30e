//! The rooms of a crate are layered: each uses only those below it, without cycles, so that a
//! newcomer can read a crate from the bottom up and change a room knowing only those above it.

use crate::circles::{circle, in_circles, report};
use crate::modules::{Files, Rooms, rooms_of};
use crate::{collect, crates, relative};
use std::collections::BTreeSet;

/// Rooms that are in a cycle today, for each crate. The list may only shrink: a room that has left
/// its cycle is removed, and none is added.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[];

/// Names of the roof itself that rooms use today, by the first segment. The list may only shrink:
/// what several rooms need belongs in a room below them, from where the roof may re-export it. A
/// macro that other crates use has to be in the roof.
const KNOWN_FROM_THE_ROOF: &[(&str, &[&str])] = &[
    ("host", &["kinds", "section", "sections", "wellspring_routes"]),
    // `*` is of the calling module, into which the macro writes it.
    ("log-conformance", &["*", "conformance_functions", "conformance_list", "conformance_need"]),
];

/// A face is one room: its routes name its handlers, which take the face.
pub(crate) fn every_crate(visit: &mut dyn FnMut(&str, &str, &Rooms)) {
    for (name, krate) in crates().into_iter().filter(|(name, _)| !name.starts_with("faces/")) {
        let source = krate.join("src");
        let mut files = Files::new();
        collect(&source, &mut |path, text| {
            let below = path.strip_prefix(&source).expect("below src");
            let parts = below.iter().map(|part| part.to_str().expect("UTF-8"));
            files.insert(parts.collect::<Vec<_>>().join("/"), text.to_owned());
        });
        if files.contains_key("lib.rs") {
            files.remove("main.rs"); // another crate, without rooms
        }
        let rooms = rooms_of(&files);
        assert_eq!(rooms.unreached, Vec::<String>::new(), "{}: no module", krate.display());
        visit(&name, &relative(&source), &rooms);
    }
}

fn listed(list: &[(&str, &[&str])], krate: &str) -> BTreeSet<String> {
    let rooms = list.iter().filter(|(name, _)| *name == krate).flat_map(|(_, rooms)| *rooms);
    rooms.map(|room| (*room).to_owned()).collect()
}

#[test]
fn the_rooms_of_a_crate_form_no_circle() {
    let mut faults = Vec::new();
    every_crate(&mut |krate, folder, rooms| {
        let known = listed(KNOWN_CIRCLES, krate);
        let found = in_circles(&rooms.arrows);
        let mut told = BTreeSet::new();
        for room in found.difference(&known) {
            let circle = circle(&rooms.arrows, room).expect("a circle");
            if told.insert(circle.iter().cloned().collect::<BTreeSet<_>>()) {
                faults.push(report(&rooms.arrows, &circle, folder));
            }
        }
        for room in known.difference(&found) {
            faults.push(format!("{folder}: {room} is in no circle: strike it off KNOWN_CIRCLES"));
        }
    });
    let advice = "Move what is on the wrong floor to a room below all that take it.";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
}

/// The layers of the workspace, from the bottom: a crate uses only crates in layers below its own.
/// So no face knows another, and only the program knows any.
const FLOORS: &[&[&str]] = &[
    &["tls", "patience", "readable"],
    &["types", "kafka", "test-support"],
    &["format", "client"],
    &["json", "log", "graph", "bolt", "consumers"],
    &["log-conformance"],
    &["cypher", "journals/postgres", "journals/raft", "connectors", "backup", "subject-keys"],
    &["host"],
    &[
        "cli",
        "faces/accounts",
        "faces/catalogue",
        "faces/cluster",
        "faces/connectors",
        "faces/console",
        "faces/events",
        "faces/graph",
        "faces/links",
        "faces/operations",
        "faces/privacy",
    ],
    &["server"],
];

/// The crates of this workspace that a manifest names as dependencies, including those for tests.
fn taken_by(manifest: &str) -> BTreeSet<String> {
    let lines = manifest.lines().filter_map(|line| line.strip_prefix("wellspring-"));
    let names = lines.filter_map(|rest| rest.split(['.', ' ', '=']).next());
    let path =
        |name: &str| name.replacen("face-", "faces/", 1).replacen("journal-", "journals/", 1);
    names.map(path).collect()
}

#[test]
fn crates_take_from_floors_below_their_own() {
    let floor = |name: &str| {
        let found = FLOORS.iter().position(|floor| floor.contains(&name));
        found.unwrap_or_else(|| panic!("{name} is on no floor: put it into FLOORS"))
    };
    let mut faults = Vec::new();
    for (name, krate) in crates() {
        let manifest = std::fs::read_to_string(krate.join("Cargo.toml")).expect("a manifest");
        // A crate's tests may depend on the crate itself, with the features they need, and on the
        // suite that it has for others.
        let suite = format!("{name}-conformance");
        let of_its_tests = |taken: &String| *taken == name || *taken == suite;
        for taken in taken_by(&manifest).into_iter().filter(|taken| !of_its_tests(taken)) {
            if floor(&taken) >= floor(&name) {
                faults.push(format!("crates/{name} takes from {taken}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}\nWhat both need lies on a floor below.", faults.join("\n"));
    let planted = "[dependencies]\nwellspring-face-links.workspace = true\n";
    assert!(taken_by(planted).contains("faces/links"));
}

/// Nor may any lower crate mention a face's crate in a comment or a text.
#[test]
fn only_the_program_names_faces() {
    for (name, krate) in crates().iter().filter(|(name, _)| name != "server") {
        collect(&krate.join("src"), &mut |path, text| {
            assert!(!text.contains("wellspring_face_"), "{} ({name}) names a face", path.display());
        });
    }
}

#[test]
fn no_room_takes_from_the_roof() {
    let mut faults = Vec::new();
    every_crate(&mut |krate, folder, rooms| {
        let known = listed(KNOWN_FROM_THE_ROOF, krate);
        let mut found = BTreeSet::new();
        for arrow in &rooms.from_the_roof {
            let name = arrow.name.split("::").next().expect("a name").to_owned();
            if !known.contains(&name) {
                let (file, line) = &arrow.place;
                faults.push(format!("{folder}/{file}:{line} takes {} from the roof", arrow.name));
            }
            found.insert(name);
        }
        for name in known.difference(&found) {
            faults
                .push(format!("{folder}: nothing takes {name}: strike it off KNOWN_FROM_THE_ROOF"));
        }
    });
    let advice = "Move it to a room; the roof may re-export it.";
    assert!(faults.is_empty(), "{}\n{advice}", faults.join("\n"));
}
