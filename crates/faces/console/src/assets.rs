//! The files of the console, embedded in the program, compressed once and named by their content.

use crate::{CSS, ConsoleFace, JAVASCRIPT};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::sync::{Arc, OnceLock};
use wellspring_host::http::content::has_version;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::{Answer, HTML, Request, Response, SVG};
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem;

/// What the console's pages may load: nothing of another host, no script in the page's text. No
/// other page may frame them, and no text becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// The name of a file.
pub(crate) static FILE: Segment<String> = Segment {
    name: "file",
    what: "Name of the file.",
    values: Values::Text(None),
    read: |text| Ok(text.to_owned()),
};

/// One file.
struct Asset {
    name: &'static str,
    media: &'static str,
    content: &'static [u8],
    prepared: OnceLock<Prepared>,
}

/// What answers are made of.
struct Prepared {
    etag: String,
    compressed: Vec<u8>,
}

/// Lists the files with their media types.
macro_rules! assets {
    ($($media:ident $name:literal,)*) => {
        /// All files.
        static ASSETS: [Asset; [$($name),*].len()] = [$(Asset {
            name: $name,
            media: $media,
            content: include_bytes!(concat!("../assets/", $name)),
            prepared: OnceLock::new(),
        },)*];
    };
}

assets! {
    HTML "index.html",
    CSS "console.css",
    SVG "icon.svg",
    JAVASCRIPT "app.js",
    JAVASCRIPT "api.js",
    JAVASCRIPT "catalogue.js",
    JAVASCRIPT "chart.js",
    JAVASCRIPT "cypher.js",
    JAVASCRIPT "drawing.js",
    JAVASCRIPT "elements.js",
    JAVASCRIPT "event-list.js",
    JAVASCRIPT "events.js",
    JAVASCRIPT "graph.js",
    JAVASCRIPT "ingest.js",
    JAVASCRIPT "json-tree.js",
    JAVASCRIPT "links.js",
    JAVASCRIPT "operation.js",
    JAVASCRIPT "overview.js",
    JAVASCRIPT "projections.js",
    JAVASCRIPT "race.js",
    JAVASCRIPT "reference.js",
    JAVASCRIPT "snippets.js",
}

impl Asset {
    fn prepared(&self) -> &Prepared {
        self.prepared.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            hasher.write(self.content);
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // Writing to memory does not fail; an empty content would fail every test of the page.
            let _ = encoder.write_all(self.content);
            Prepared {
                etag: format!("\"{:016x}\"", hasher.finish()),
                compressed: encoder.finish().unwrap_or_default(),
            }
        })
    }

    /// The answer to a request: 304 if the client has this content.
    fn answer(&'static self, request: &Request) -> Response {
        let prepared = self.prepared();
        let response = if has_version(request, &prepared.etag) {
            Response::empty(304)
        } else if accepts_gzip(request) {
            Response::text(self.media, &prepared.compressed[..])
                .with("content-encoding", "gzip".to_owned())
        } else {
            Response::text(self.media, self.content)
        };
        response
            .with("etag", prepared.etag.clone())
            .with("cache-control", "no-cache".to_owned())
            .with("vary", "Accept, Accept-Encoding".to_owned())
            .with("content-security-policy", POLICY.to_owned())
            .with("referrer-policy", "no-referrer".to_owned())
            .with("cross-origin-opener-policy", "same-origin".to_owned())
            .with("cross-origin-resource-policy", "same-origin".to_owned())
    }
}

fn accepts_gzip(request: &Request) -> bool {
    let named = |accepted: &str| {
        accepted
            .split(',')
            .any(|coding| coding.split(';').next().unwrap_or_default().trim() == "gzip")
    };
    request.header("accept-encoding").is_some_and(named)
}

fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// The page itself.
pub(crate) fn page(request: &Request) -> Response {
    ASSETS[0].answer(request)
}

/// `GET /console/{file}`.
pub(crate) async fn file(face: Arc<ConsoleFace>, request: Box<Request>) -> Answer {
    let name = request.segment(&FILE)?;
    let found = find(&name).filter(|asset| face.is_on && asset.media != HTML);
    let absent = || problem::NOT_FOUND.because(format!("the console has no file {name}"));
    Ok(found.ok_or_else(absent)?.answer(&request))
}

/// `GET /favicon.ico`, for what asks without having read a page.
pub(crate) async fn icon(_face: Arc<ConsoleFace>, request: Box<Request>) -> Answer {
    let icon = find("icon.svg").ok_or_else(|| problem::NOT_FOUND.because("no icon"))?;
    Ok(icon.answer(&request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_are_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.prepared().compressed.len()).sum();
        assert!(bytes <= 150_000, "{bytes} bytes compressed");
    }

    #[test]
    fn every_file_of_the_folder_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(find(&name).is_some(), "{name} is not in assets!");
        }
    }

    #[test]
    fn no_file_names_another_host() {
        for asset in &ASSETS {
            let text = String::from_utf8_lossy(asset.content);
            let foreign = text.split("http").skip(1).filter(|rest| {
                let rest = rest.trim_start_matches('s');
                rest.starts_with("://")
                    && !rest.starts_with("://www.w3.org/2000/svg")
                    && !rest.starts_with("://127.0.0.1")
                    && !rest.starts_with("://example.com")
            });
            let foreign: Vec<&str> = foreign.map(|rest| &rest[..rest.len().min(40)]).collect();
            assert!(foreign.is_empty(), "{}: {foreign:?}", asset.name);
        }
    }
}
