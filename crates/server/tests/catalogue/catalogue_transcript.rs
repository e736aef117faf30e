//! The transcript in `docs/catalogue.md`: every request is sent to a server, in order, and every
//! answer shown is compared byte for byte. With `-i` some headers are shown first. `…` stands for
//! anything.

use crate::server::Server;
use crate::transcript::{ask, compare, steps};

#[test]
fn the_page_on_the_catalogue_shows_what_is_answered() {
    let server = Server::start();
    let steps = steps("catalogue.md");
    let mut etag = String::new();
    for step in &steps {
        let answer = ask(&server, &step.command, ("$ETAG", &etag));
        compare(step, &answer);
        if step.command == "curl -i localhost:4000/lookup/2" {
            answer.header("etag").expect("a tag").clone_into(&mut etag);
        }
    }
    assert!(steps.len() >= 30, "{} steps", steps.len());
}
