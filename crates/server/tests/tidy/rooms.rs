//! The rooms of a crate lie on floors: each takes from those below it, and no circle forms, so that
//! a newcomer can read a crate from the bottom up and change a room by knowing those above it.

use crate::circles::{circle, in_circles, report};
use crate::modules::{Files, Rooms, rooms_of};
use crate::{collect, folders, relative, root};
use std::collections::BTreeSet;

/// Rooms that are in a circle today, of each crate. The list may only shrink: a room that is out
/// of its circle is struck off, and none is added.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[];

/// What rooms take from the roof itself today, by the first name of its path. May only shrink:
/// what several rooms need lies in a room below them, from where the roof may re-export it.
/// A macro that other crates use lies in the roof by the rules of the language.
const KNOWN_FROM_THE_ROOF: &[(&str, &[&str])] = &[("server", &["wellspring_routes"])];

fn every_crate(visit: &mut dyn FnMut(&str, &str, &Rooms)) {
    for krate in folders(&root().join("crates")) {
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
        let name = krate.file_name().and_then(|name| name.to_str()).expect("a name");
        visit(name, &relative(&source), &rooms);
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

/// A face is a folder under `faces`. The rooms below know none, as that would close a circle.
#[test]
fn no_face_takes_from_another_or_from_their_list() {
    let folder = root().join("crates/server/src/faces");
    let mut files = Files::new();
    collect(&folder, &mut |path, text| {
        let below = path.strip_prefix(&folder).expect("below the folder");
        let parts = below.iter().map(|part| part.to_str().expect("UTF-8"));
        // As if it were a crate of its own, whose rooms are the faces.
        let name = parts.collect::<Vec<_>>().join("/");
        let name = if name == "mod.rs" { "lib.rs".to_owned() } else { name };
        let text = text.replace("crate::faces", "faces").replace("crate::", "below::");
        files.insert(name, text.replace("faces::", "crate::"));
    });
    let rooms = rooms_of(&files);
    assert!(rooms.names.len() >= 4, "faces are found: {:?}", rooms.names);
    let taken = rooms.arrows.iter().chain(&rooms.from_the_roof);
    let taken = taken.map(|arrow| {
        let (file, line) = &arrow.place;
        format!("faces/{file}:{line}: {} takes {} from {}", arrow.from, arrow.name, arrow.to)
    });
    let taken: Vec<String> = taken.collect();
    assert!(taken.is_empty(), "{}\nWhat two faces need lies in a room below.", taken.join("\n"));
}

/// The rooms that may name faces: those that put a server together, and what is outside of it.
const NAME_FACES: &[&str] = &["config", "embed", "faces", "parsers", "start"];

#[test]
fn only_those_who_put_a_server_together_name_faces() {
    let mut faults = Vec::new();
    every_crate(&mut |krate, folder, rooms| {
        let to_faces = rooms.arrows.iter().filter(|arrow| arrow.to == "faces");
        let others = to_faces.filter(|arrow| !NAME_FACES.contains(&arrow.from.as_str()));
        for arrow in others.filter(|_| krate == "server") {
            let (file, line) = &arrow.place;
            faults.push(format!("{folder}/{file}:{line} takes {}", arrow.name));
        }
    });
    assert!(faults.is_empty(), "{}\nWhat a face and others need lies below.", faults.join("\n"));
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
